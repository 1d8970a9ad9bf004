#include "trireme/ops/conv/measurements.h"

#include <fmt/format.h>

#include <tuple>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/base/hardware/cpu.h"
#include "trireme/base/text/json_file.h"

namespace trireme::ops {
namespace {

constexpr std::string_view kFormat = "trireme-conv-1";
constexpr std::uint64_t kMostBytes = 16 << 20;
constexpr std::size_t kNumbers = 14;  // of a shape

std::array<int64_t, kNumbers> numbers_of(const ConvShape& it) {
  return {it.batch,     it.in_channels, it.height,     it.width,      it.out_channels, it.kernel[0],   it.kernel[1],
          it.stride[0], it.stride[1],   it.padding[0], it.padding[1], it.dilation[0],  it.dilation[1], it.groups};
}

ConvShape shape_of(const std::array<int64_t, kNumbers>& it) {
  return {.batch = it[0],
          .in_channels = it[1],
          .height = it[2],
          .width = it[3],
          .out_channels = it[4],
          .kernel = {it[5], it[6]},
          .stride = {it[7], it[8]},
          .padding = {it[9], it[10]},
          .dilation = {it[11], it[12]},
          .groups = it[13]};
}

std::pair<ConvCase, ConvTimes> read_case(const JsonFile& file, const JsonFile::Place& place) {
  file.only(place, {"shape", "pass", "threads", "instructions", "us"});
  std::array<int64_t, kNumbers> numbers{};
  if (file.array(place / "shape").size() != kNumbers)
    file.fail(place / "shape", fmt::format("has not {} numbers", kNumbers));
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = static_cast<int64_t>(file.count(place / "shape" / i));
  ConvCase of{.shape = shape_of(numbers),
              .threads = static_cast<int>(file.count(place / "threads")),
              .instructions = file.text(place / "instructions")};
  const std::string named = file.text(place / "pass");
  bool known = false;
  for (const Pass pass : kPasses) {
    if (name(pass) != named) continue;
    of.pass = pass;
    known = true;
  }
  if (!known) file.fail(place / "pass", "is no pass");
  ConvTimes times;
  for (const auto& [algorithm, unused] : file.object(place / "us").items()) {
    times[algorithm] = file.number(place / "us" / algorithm) * 1e-6;
  }
  return {of, times};
}

}  // namespace

bool ConvCase::operator<(const ConvCase& other) const {
  const auto all = [](const ConvCase& it) {
    return std::tuple(numbers_of(it.shape), it.pass, it.threads, it.instructions);
  };
  return all(*this) < all(other);
}

std::optional<ConvTimes> ConvMeasurements::find(const ConvCase& of) const {
  const MutexLock lock(mutex_);
  const auto at = times_.find(of);
  return at == times_.end() ? std::nullopt : std::optional(at->second);
}

void ConvMeasurements::put(const ConvCase& of, ConvTimes times) {
  const MutexLock lock(mutex_);
  times_[of] = std::move(times);
}

std::size_t ConvMeasurements::size() const {
  const MutexLock lock(mutex_);
  return times_.size();
}

void ConvMeasurements::load(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::exists(path, error) && !error) return;
  const JsonFile file(read_text(path, kMostBytes), path);
  const JsonFile::Place root;
  if (file.text(root / "format") != kFormat) return;  // of another version: as good as nothing
  file.only(root, {"format", "cases"});
  std::vector<std::pair<ConvCase, ConvTimes>> read;
  for (std::size_t i = 0; i < file.array(root / "cases").size(); ++i)
    read.push_back(read_case(file, root / "cases" / i));
  const MutexLock lock(mutex_);
  for (auto& [of, times] : read) times_[of] = std::move(times);
}

void ConvMeasurements::save(const std::filesystem::path& path) const {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  {
    const MutexLock lock(mutex_);
    for (const auto& [of, times] : times_) {
      nlohmann::ordered_json us;
      for (const auto& [algorithm, seconds] : times) us[algorithm] = seconds * 1e6;
      cases.push_back({{"shape", numbers_of(of.shape)},
                       {"pass", name(of.pass)},
                       {"threads", of.threads},
                       {"instructions", of.instructions},
                       {"us", us}});
    }
  }
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw Error(fmt::format("cannot write {}: {}", path.string(), error.message()));
  write_atomically(path, nlohmann::ordered_json{{"format", kFormat}, {"cases", std::move(cases)}}.dump() + "\n");
}

std::filesystem::path conv_measurements_path() {
  return cache_folder() / "ops" / ("cpu-" + key_of(this_cpu())) / "conv.json";
}

}  // namespace trireme::ops
