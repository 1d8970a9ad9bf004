#include "trireme/cli/bench/kept.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "trireme/base/error.h"

namespace trireme::bench {
namespace {

using nlohmann::json;

std::optional<std::pair<Kept::Key, StepTimes>> parse(const std::string& line) {
  const auto told = json::parse(line, nullptr, false);
  if (!told.is_object()) return std::nullopt;
  const auto word = [&](const char* key) {
    const auto at = told.find(key);
    return at != told.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const auto seconds = [&](const char* key) {
    const auto at = told.find(key);
    return at != told.end() && at->is_number() ? at->get<double>() : 0.0;
  };
  const Kept::Key key{word("group"), word("round"), word("way")};
  const StepTimes times{seconds("predicted_s"), seconds("measured_s"), seconds("alone_s"), seconds("planned_s")};
  if (key.group.empty() || key.round.empty() || key.way.empty()) return std::nullopt;
  for (double one : {times.predicted_s, times.measured_s, times.alone_s, times.planned_s}) {
    if (!(one > 0) || !std::isfinite(one)) return std::nullopt;
  }
  return std::pair(key, times);
}

}  // namespace

Kept::Kept(const std::string& path) : path_(path) {
  std::uintmax_t whole = 0;  // bytes of whole lines
  bool cut = false;
  if (std::ifstream file(path); file) {
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      if ((cut = file.eof())) break;
      auto one = parse(line);
      if (!one) {
        throw ConfigError(
            fmt::format("{}:{}: a line of `trireme bench predict --keep` was expected: {{\"group\": …, "
                        "\"round\": …, \"way\": …, \"predicted_s\": …, \"measured_s\": …, \"alone_s\": …, "
                        "\"planned_s\": …}}",
                        path, number));
      }
      all_.insert_or_assign(one->first, one->second);
      whole += line.size() + 1;
    }
  }
  if (!std::ofstream(path, std::ios::app)) throw ConfigError(fmt::format("{}: cannot be written", path));
  if (cut) std::filesystem::resize_file(path, whole);
}

const StepTimes* Kept::find(const Key& key) const {
  const auto at = all_.find(key);
  return at != all_.end() ? &at->second : nullptr;
}

void Kept::add(const Key& key, const StepTimes& times) {
  all_.insert_or_assign(key, times);
  if (path_.empty()) return;
  std::ofstream file(path_, std::ios::app);
  file << json{{"group", key.group},
               {"round", key.round},
               {"way", key.way},
               {"predicted_s", times.predicted_s},
               {"measured_s", times.measured_s},
               {"alone_s", times.alone_s},
               {"planned_s", times.planned_s}}
              .dump()
       << "\n"
       << std::flush;
  if (!file) throw Error(fmt::format("{}: cannot be written", path_));
}

}  // namespace trireme::bench
