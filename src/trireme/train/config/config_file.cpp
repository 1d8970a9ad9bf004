// Configuration files: JSON and TOML.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/base/text/json_place.h"
#include "trireme/base/text/json_text.h"
#include "trireme/base/text/text.h"
#include "trireme/base/text/toml_text.h"
#include "trireme/train/config/config.h"

namespace trireme::train {
namespace {

using OrderedJson = nlohmann::ordered_json;

// One setting of a file, as it is written on a command line.
struct WrittenSetting {
  std::string key, text;
  std::size_t line;
};

std::string inner_key(const std::string& outer, std::string_view name) {
  return outer.empty() ? std::string(name) : fmt::format("{}.{}", outer, name);
}

// Throws ConfigError where no setting's key begins so.
void check_empty(const std::string& section) {
  if (section.empty() || section == "model.args") return;
  for (const auto& field : fields()) {
    if (field.key.starts_with(section + ".")) return;
  }
  (void)find_field(section);  // throws, naming the nearest
}

class FileLine {
 public:
  FileLine(const std::string& path, std::size_t line) : path_(path), line_(line) {}
  // What `act` says is wrong is said of this place.
  template <typename Act>
  void of(const Act& act) const {
    try {
      act();
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}:{}: {}", path_, line_, error.what()));
    }
  }
  [[noreturn]] void no_value(const std::string& key) const {
    throw DataError(fmt::format("{}:{}: {}: a text, a number, true or false was expected", path_, line_, clipped(key)));
  }

 private:
  const std::string& path_;
  const std::size_t line_;
};

void collect_settings(std::vector<WrittenSetting>& all, const toml::table& table, const std::string& outer,
                      const std::string& path) {
  if (table.empty()) FileLine(path, table.source().begin.line).of([&] { check_empty(outer); });
  for (const auto& [name, node] : table) {
    const auto key = inner_key(outer, name.str());
    const std::size_t line = node.source().begin.line;
    if (const auto* inner = node.as_table()) {
      collect_settings(all, *inner, key, path);
    } else if (auto text = node.value_exact<std::string>()) {
      all.push_back({key, *text, line});
    } else if (auto whole = node.value_exact<std::int64_t>()) {
      all.push_back({key, fmt::format("{}", *whole), line});
    } else if (auto number = node.value_exact<double>()) {
      all.push_back({key, fmt::format("{}", *number), line});  // also nan and inf, which no setting takes
    } else if (auto flag = node.value_exact<bool>()) {
      all.push_back({key, *flag ? "true" : "false", line});
    } else {
      FileLine(path, line).no_value(key);
    }
  }
}

void collect_settings(std::vector<WrittenSetting>& all, const OrderedJson& object, const OrderedJson::json_pointer& at,
                      const std::string& outer, std::string_view text, const std::string& path) {
  const auto line_of = [&](const OrderedJson::json_pointer& place) { return json_line(text, place.to_string()); };
  if (object.empty()) FileLine(path, line_of(at)).of([&] { check_empty(outer); });
  for (const auto& [name, value] : object.items()) {
    const auto key = inner_key(outer, name);
    if (value.is_object()) {
      collect_settings(all, value, at / name, key, text, path);
    } else if (value.is_array() || value.is_null()) {
      FileLine(path, line_of(at / name)).no_value(key);
    } else {
      all.push_back({key, value.is_string() ? value.get<std::string>() : value.dump(), line_of(at / name)});
    }
  }
}

// A run.json and a compare.json hold the configuration among other things; beside a configuration of somebody's own
// there is nothing.
OrderedJson::json_pointer configuration_in(const OrderedJson& root, std::string_view text, const std::string& path) {
  if (!root.contains("config") || !root["config"].is_object()) return OrderedJson::json_pointer();
  const OrderedJson::json_pointer config("/config");
  if (root.contains("status") || root.contains("variants")) return config;
  for (const auto& [name, value] : root.items()) {
    if (name == "config") continue;
    throw ConfigError(fmt::format("{}:{}: '{}' stands beside 'config', where nothing is read; put it within", path,
                                  json_line(text, (OrderedJson::json_pointer() / name).to_string()), clipped(name)));
  }
  return config;
}

std::vector<WrittenSetting> settings_in(const std::string& text, const std::string& path) {
  std::vector<WrittenSetting> all;
  if (path.ends_with(".toml")) {
    collect_settings(all, parse_toml(text, path), "", path);
    return all;
  }
  const auto root = parse_json(text, path, " (a name ending in .toml is read as TOML)");
  if (!root.is_object()) throw ConfigError(fmt::format("{}:1: not a table of settings", path));
  const auto at = configuration_in(root, text, path);
  collect_settings(all, root.at(at), at, "", text, path);
  return all;
}

}  // namespace

void merge_file(Config& config, const std::string& path) {
  constexpr std::streamsize kMost = 16 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<std::size_t>(kMost) + 1, '\0');
  if (file) file.read(text.data(), kMost + 1);
  if (file.bad() || !file.is_open()) throw DataError(fmt::format("{}: cannot be read as a configuration", path));
  if (file.gcount() > kMost) throw DataError(fmt::format("{}: more than 16 MiB, too large for a configuration", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  for (const auto& setting : settings_in(text, path)) {
    FileLine(path, setting.line).of([&] { set(config, setting.key, setting.text); });
  }
}

}  // namespace trireme::train
