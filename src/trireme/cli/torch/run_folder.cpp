#include "trireme/cli/torch/run_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "trireme/base/error.h"
#include "trireme/train/checkpoint/checkpoints.h"
#include "trireme/train/checkpoint/state.h"

namespace trireme::cli {
namespace {

// "lenet" of "lenet", "net" of "/models/net.pt"; something a folder may be called.
std::string short_name(const std::string& spec) {
  auto name = std::filesystem::path(spec).stem().string();
  for (char& letter : name) {
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-') letter = '-';
  }
  return name.substr(0, 30);
}

}  // namespace

std::string fresh_folder(const train::Config& config) {
  auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &local);
  auto base = fmt::format("runs/{}-{}-{}", time, short_name(config.model), short_name(config.data));
  auto folder = base;
  for (int k = 2; std::filesystem::exists(folder); ++k) folder = fmt::format("{}-{}", base, k);
  return folder;
}

std::string newest_run() {
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("runs", ignored)) {
    if (entry.is_directory() && entry.path().string() > newest && train::latest_checkpoint(entry.path()).found) {
      newest = entry.path().string();
    }
  }
  if (newest.empty()) throw ConfigError("--resume: no run with a checkpoint in runs/; write --resume DIR");
  return newest;
}

train::Config config_in(const std::string& folder) {
  auto search = train::latest_checkpoint(folder);
  if (!search.found) {
    throw DataError(fmt::format("{}: no whole checkpoint to resume from{}", folder,
                                search.skipped.empty() ? "" : "; " + search.skipped.front()));
  }
  auto file = search.found->path.string();
  train::Config config;
  train::merge(config, train::config_of(train::load_checkpoint(search.found->path), file), file);
  config.out = folder;
  return config;
}

}  // namespace trireme::cli
