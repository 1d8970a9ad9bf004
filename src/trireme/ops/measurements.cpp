#include "trireme/ops/measurements.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/base/hardware/cpu.h"
#include "trireme/base/text/json_file.h"

namespace trireme::ops {
namespace {

constexpr std::string_view kFormat = "trireme-operators-1";
constexpr double kLeastUs = 1e-6;  // nothing takes no time
constexpr std::uint64_t kMostBytes = 16 << 20;
constexpr std::chrono::seconds kPatience{5};  // others hold the lock while they write one file

std::string reason(int error) { return std::strerror(error); }

// Held by who reads the file, adds to it and writes it. A process that ends lets go.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) throw Error(fmt::format("cannot write {}: {}", path.string(), reason(errno)));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      const int error = errno;
      ::close(file_);
      throw Error(fmt::format("cannot lock {}: {}", path.string(), reason(error)));
    }
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace

Measurements::Measurements(std::filesystem::path file) : file_(std::move(file)) {
  if (file_.empty()) return;
  const MutexLock lock(mutex_);
  load();
}

Measurements::Cases Measurements::read() const {
  Cases cases;
  if (std::error_code error; !std::filesystem::exists(file_, error) && !error) return cases;
  const JsonFile json(read_text(file_, kMostBytes), file_);
  const JsonFile::Place root;
  if (json.text(root / "format") != kFormat) return cases;
  json.only(root, {"format", "us"});
  for (const auto& [of, unused] : json.object(root / "us").items()) {
    const JsonFile::Place place = root / "us" / of;
    Times& times = cases[of];
    for (const auto& [implementation, value] : json.object(place).items()) {
      times[implementation] = json.number(place / implementation, kLeastUs) * 1e-6;
    }
  }
  return cases;
}

void Measurements::load() {
  try {
    cases_ = read();
  } catch (const Error& error) {
    note_ = fmt::format("{}; operators are measured anew", error.what());
  }
}

std::optional<Times> Measurements::find(const std::string& of) const {
  const MutexLock lock(mutex_);
  const auto at = cases_.find(of);
  return at == cases_.end() ? std::nullopt : std::optional(at->second);
}

Times Measurements::keep(const std::string& of, const Times& times, bool afresh) {
  const MutexLock lock(mutex_);
  const auto add = [&](Cases& cases) TRIREME_REQUIRES(mutex_) -> Times {
    Times& known = cases[of];
    if (afresh) known.clear();
    known.insert(times.begin(), times.end());
    return known;
  };
  if (file_.empty()) return add(cases_);
  try {
    std::error_code error;
    std::filesystem::create_directories(file_.parent_path(), error);
    if (error) throw Error(fmt::format("cannot write {}: {}", file_.string(), error.message()));
    const FileLock others(file_.string() + ".lock");
    Cases all;
    try {
      all = read();
    } catch (const Error&) {
      // Said when it was loaded; what is whole takes its place.
    }
    Times result = add(all);
    nlohmann::ordered_json us;
    for (const auto& [each, known] : all) {
      for (const auto& [implementation, seconds] : known) us[each][implementation] = seconds * 1e6;
    }
    write_atomically(file_, nlohmann::ordered_json{{"format", kFormat}, {"us", std::move(us)}}.dump() + "\n");
    // What others have added meanwhile is not taken: a choice, once made, stays for the life of the process.
    cases_[of] = result;
    return result;
  } catch (const Error& error) {
    if (note_.empty()) note_ = fmt::format("{}; what operators take is measured anew by every run", error.what());
    return add(cases_);
  }
}

std::string Measurements::note() const {
  const MutexLock lock(mutex_);
  return note_;
}

void Measurements::say(std::string line) {
  const MutexLock lock(mutex_);
  note_ = std::move(line);
}

std::filesystem::path measurements_path() {
  return cache_folder() / "tune" / ("cpu-" + key_of(this_cpu())) / "operators.json";
}

}  // namespace trireme::ops
