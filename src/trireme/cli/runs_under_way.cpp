#include "trireme/cli/runs_under_way.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "trireme/base/text/text.h"

namespace trireme::cli {
namespace {

namespace fs = std::filesystem;

// At most `most` bytes of a file; of those in /proc nobody knows the size beforehand.
std::string beginning_of(const fs::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

struct Process {
  std::vector<std::string> words;  // its command line
  pid_t parent = 0;
  double start_s = 0;  // after the host's
};

// Parent and start; false where the process is gone or is nobody's that can be understood.
bool read_stat(const fs::path& folder, Process& process) {
  const auto text = beginning_of(folder / "stat", 4096);
  const auto name_end = text.rfind(')');  // the name may hold anything
  if (name_end == text.npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  fields >> state >> process.parent;
  constexpr int kBetween = 17;  // from the parent to the start
  for (int k = 0; k < kBetween; ++k) fields >> state;
  double ticks = 0;
  fields >> ticks;
  process.start_s = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return !fields.fail();
}

std::vector<std::string> words_in(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream parts(line);
  for (std::string word; std::getline(parts, word, '\0');) words.push_back(word);
  return words;
}

bool trains(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 2> kCommands{"train", "compare"};
  if (words.size() < 2) return false;
  const auto program = fs::path(words[0]).filename().string();
  return (program == "trireme-torch" || program == "trireme") &&
         std::ranges::find(kCommands, words[1]) != kCommands.end() && std::ranges::find(words, "--help") == words.end();
}

// Those that train, by number. Workers and what watches over them are processes of the same command line.
std::map<pid_t, Process> training_processes(const fs::path& proc) {
  std::map<pid_t, Process> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc, error)) {
    const auto name = entry.path().filename().string();
    pid_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size()) continue;
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    const auto title = beginning_of(entry.path() / "comm", 64);
    if (!title.starts_with("trireme") && !title.starts_with("guardian")) continue;
    Process process;
    process.words = words_in(beginning_of(entry.path() / "cmdline", 1 << 16));
    if (trains(process.words) && read_stat(entry.path(), process)) found.emplace(number, std::move(process));
  }
  return found;
}

// Workers are told the folder; who started them may have left the choice to the program.
std::string folder_told(const std::vector<std::string>& words) {
  std::string folder;
  for (std::size_t k = 0; k < words.size(); ++k) {
    if (words[k] == "--out" && k + 1 < words.size()) folder = words[k + 1];
    if (words[k].starts_with("--out=")) folder = words[k].substr(6);
  }
  return folder;
}

// Of a process that does not say: where it keeps its metrics.
std::string folder_written(const fs::path& process) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(process / "fd", error)) {
    const auto file = fs::read_symlink(entry.path(), error);
    if (!error && file.filename() == "metrics.jsonl") return file.parent_path().string();
  }
  return "";
}

pid_t first_of(pid_t number, const std::map<pid_t, Process>& all) {
  std::set<pid_t> seen;
  for (auto at = all.find(number); at != all.end() && seen.insert(at->first).second; at = all.find(at->second.parent)) {
    number = at->first;
  }
  return number;
}

nlohmann::json run_file(const fs::path& folder) {
  constexpr std::size_t kMost = 1 << 20;
  auto json = nlohmann::json::parse(beginning_of(folder / "run.json", kMost), nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

}  // namespace

std::string status_of_run(const fs::path& folder) {
  const auto run = run_file(folder);
  return run.contains("status") && run["status"].is_string() ? printable(run["status"].get<std::string>()) : "";
}

std::string description_of_run(const fs::path& folder) {
  const auto run = run_file(folder);
  const auto text = [&](const char* at) {
    const auto* value =
        run.contains(nlohmann::json::json_pointer(at)) ? &run[nlohmann::json::json_pointer(at)] : nullptr;
    return value != nullptr && value->is_string() ? clipped(value->get<std::string>()) : "";
  };
  const auto model = text("/config/model/name"), data = text("/config/data/name");
  if (model.empty() || data.empty()) return "";
  const nlohmann::json::json_pointer workers("/config/run/workers");
  const auto count = run.contains(workers) && run[workers].is_number_unsigned() ? run[workers].get<std::uint64_t>() : 0;
  return fmt::format("{} on {}{}", model, data,
                     count > 0 ? fmt::format(", {} worker{}", count, count == 1 ? "" : "s") : "");
}

std::vector<RunUnderWay> runs_under_way(const fs::path& proc) {
  const auto all = training_processes(proc);
  double up_s = 0;
  std::istringstream(beginning_of(proc / "uptime", 64)) >> up_s;
  std::map<pid_t, RunUnderWay> runs;
  for (const auto& [number, process] : all) {
    auto& run = runs[first_of(number, all)];
    auto folder = folder_told(process.words);
    if (folder.empty()) folder = folder_written(proc / std::to_string(number));
    if (run.folder.empty() && !folder.empty()) {
      std::error_code error;
      const auto from = fs::read_symlink(proc / std::to_string(number) / "cwd", error);
      run.folder = printable(folder);
      run.what = description_of_run(from / folder);
    }
  }
  std::vector<RunUnderWay> found;
  for (auto& [number, run] : runs) {
    const auto& first = all.at(number);
    run.process = number;
    run.command = first.words[1];
    run.seconds = std::max(0.0, up_s - first.start_s);
    found.push_back(std::move(run));
  }
  std::ranges::stable_sort(found, std::greater{}, &RunUnderWay::seconds);
  return found;
}

}  // namespace trireme::cli
