// Configuration files: JSON and TOML.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/base/toml-inl.h"
#include "trireme/train/config.h"

namespace trireme::train {
namespace {

nlohmann::json from_toml(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    auto json = nlohmann::json::object();
    for (const auto& [key, value] : *table) json[std::string(key.str())] = from_toml(value);
    return json;
  }
  if (auto text = node.value_exact<std::string>()) return *text;
  if (auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (auto number = node.value_exact<double>()) return *number;
  if (auto flag = node.value_exact<bool>()) return *flag;
  return "(a list or a date)";
}

}  // namespace

void merge_file(Config& config, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(fmt::format("{}: cannot be read as a configuration", path));
  std::stringstream text;
  text << file.rdbuf();
  nlohmann::json json;
  try {
    json = path.ends_with(".toml") ? from_toml(toml::parse(text.str(), path)) : nlohmann::json::parse(text.str());
  } catch (const toml::parse_error& error) {
    throw DataError(
        fmt::format("{}:{}:{}: {}", path, error.source().begin.line, error.source().begin.column, error.description()));
  } catch (const MalformedToml&) {
    throw DataError(fmt::format("{}: not TOML", path));
  } catch (const nlohmann::json::parse_error& error) {
    auto upto = text.str().substr(0, error.byte);
    auto line = 1 + std::ranges::count(upto, '\n');
    throw DataError(fmt::format("{}:{}: not JSON (a name ending in .toml is read as TOML)", path, line));
  }
  // A run.json holds the configuration among other things.
  merge(config, json.contains("config") && json["config"].is_object() ? json["config"] : json, path);
}

}  // namespace trireme::train
