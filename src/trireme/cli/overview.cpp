#include "trireme/cli/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "trireme/base/available_memory.h"
#include "trireme/base/cores.h"
#include "trireme/base/hardware/cpu.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/runs_under_way.h"

namespace trireme::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kLabel = 10;

// What follows the colon of the first line of a file that begins so; empty where there is none.
std::string value_in(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto start = line.find_first_not_of(" \t", std::min(line.find(':'), line.size() - 1) + 1);
    return start == line.npos ? "" : printable(line.substr(start));
  }
  return "";
}

std::string gib(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1 << 30)); }

std::string memory() {
  double kib = 0;
  std::istringstream(value_in("/proc/meminfo", "MemTotal")) >> kib;
  const auto free = available_memory();
  if (!(kib > 0)) return "memory unknown";
  return gib(kib * 1024) + " of memory" + (free ? fmt::format(", {} free", gib(static_cast<double>(*free))) : "");
}

// The driver's files tell: its library would take a second to load.
std::string gpus() {
  std::vector<std::string> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    auto model = value_in(entry.path() / "information", "Model");
    models.push_back(model.empty() ? "NVIDIA GPU" : model);
  }
  if (models.empty()) {
    for (const auto& entry : fs::directory_iterator("/dev", error)) {
      const auto name = entry.path().filename().string();
      constexpr std::string_view kDevice = "nvidia";
      const bool numbered =
          name.size() > kDevice.size() && name.starts_with(kDevice) &&
          std::all_of(name.begin() + kDevice.size(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
      if (numbered) models.emplace_back("NVIDIA GPU");
    }
  }
  if (models.empty()) return "no GPU";
  std::ranges::sort(models);
  std::string all;
  for (auto at = models.begin(); at != models.end();) {
    const auto end = std::upper_bound(at, models.end(), *at);
    all += fmt::format("{}{}{}", all.empty() ? "" : ", ", end - at > 1 ? fmt::format("{} ", end - at) : "", *at);
    at = end;
  }
  return all;
}

// The newest folder of runs/, by its run.json.
std::optional<fs::path> last_run() {
  std::optional<fs::path> newest;
  fs::file_time_type latest{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("runs", error)) {
    std::error_code none;
    const auto time = fs::last_write_time(entry.path() / "run.json", none);
    if (none || (newest && time <= latest)) continue;
    newest = entry.path();
    latest = time;
  }
  return newest;
}

std::string runs(int width) {
  constexpr std::size_t kMostShown = 8;
  const auto under_way = runs_under_way();
  std::string all;
  for (std::size_t k = 0; k < std::min(under_way.size(), kMostShown); ++k) {
    const auto& run = under_way[k];
    auto line = fmt::format("{}, for {}, process {}{}", run.what.empty() ? run.command : run.what,
                            duration_text(run.seconds), run.process, run.folder.empty() ? "" : ", in " + run.folder);
    all += labelled(all.empty() ? "runs" : "", kLabel, line, width);
  }
  if (under_way.size() > kMostShown) {
    all += labelled("", kLabel, fmt::format("and {} more", under_way.size() - kMostShown), width);
  }
  if (!under_way.empty()) return all;
  std::string none = "none of yours under way";
  if (const auto last = last_run()) {
    const auto status = status_of_run(*last), what = description_of_run(*last);
    none += fmt::format("; the last here: {}{}, {}", what.empty() ? "" : what + ", ",
                        status == "running" ? "cut short"
                        : status.empty()    ? "unknown"
                                            : status,
                        last->string());
  }
  return labelled("runs", kLabel, none, width);
}

// Which LibTorch was built with, and what the other would bring; `torch` is a word of the script that builds us.
std::string libtorch(const std::string& program, bool scripted) {
  const std::string version = TRIREME_TORCH_VERSION, folder = TRIREME_TORCH_ROOT;
  if (version.empty()) return "none: built without";
  if (folder.empty()) {
    return fmt::format("{}{}", version,
                       scripted ? fmt::format("; a newer one, with faster operators: {} torch pip", program) : "");
  }
  return fmt::format("{} in {}{}", version, folder,
                     scripted ? fmt::format("; Debian's, the default: {} torch debian", program) : "");
}

}  // namespace

std::string overview(const std::string& program, bool scripted, int width) {
  std::string out = labelled("", 0, "Trireme: distributed deep-learning training for C++ on LibTorch", width) + "\n";
  const int cores = usable_cores();
  out += labelled(
      "host", kLabel,
      fmt::format("{}, {} core{}, {}, {}", this_cpu().model, cores, cores == 1 ? "" : "s", memory(), gpus()), width);
  out += labelled("libtorch", kLabel, libtorch(program, scripted), width);
  out += runs(width) + "\n";
  for (const auto* example :
       {"train --model lenet --data fashion-mnist --workers 2",
        "train --strategy local-sgd --compress topk:0.01 --workers 2",
        "compare --vary strategy allreduce local-sgd ps-ssp", "explain ring --ranks 4", "bench all-reduce --ranks 2"}) {
    out += labelled("", 2, fmt::format("{} {}", program, example), width);
  }
  return out + "\n" + labelled("", 0, fmt::format("{} --help lists all commands; each has --help", program), width);
}

}  // namespace trireme::cli
