#include "trireme/collective/cost/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/cache_folder.h"
#include "trireme/base/hardware/cpu.h"
#include "trireme/base/text/json_text.h"
#include "trireme/base/text/text.h"
#include "trireme/collective/cost/cost_json.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormats = "trireme-tuning-", kFormat = "trireme-tuning-3";

// In KiB, as the kernel writes it.
std::string memory_of_host() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("MemTotal")) continue;
  return line;
}

// Takes `key` out of `json`; what is left at the end is unknown.
template <typename T>
T take(nlohmann::json& json, const char* key) {
  auto at = json.find(key);
  if (at == json.end()) throw DataError(fmt::format("tuning has no '{}'", key));
  try {
    T value = at->get<T>();
    if constexpr (std::is_unsigned_v<T>) {
      if (!at->is_boolean() && at->is_number() && at->template get<double>() < 0) throw DataError("");
    }
    json.erase(at);
    return value;
  } catch (const std::exception&) {
    throw DataError(fmt::format("tuning has a bad value for '{}': {}", key, clipped(at->dump())));
  }
}

}  // namespace

// Defaults come from a 2-core Zen 4 machine; `tune` replaces them.
Tuning default_tuning(std::string_view transport) {
  Tuning tuning;
  if (transport == "tcp") {
    tuning.model.message = {12e-6, {{16384, 20e-6}, {262144, 110e-6}}, 1 / 3.0e9};
    tuning.model.gamma = 1 / 12e9;
    tuning.model.wires = Wires::one;
    tuning.spins = 250;  // a look at a socket is a system call, some 0.4 µs
  }
  return tuning;
}

nlohmann::json to_json(const Tuning& tuning) {
  return {{"format", kFormat},
          {"model", to_json(tuning.model)},
          {"inline_limit", tuning.inline_limit},
          {"stage_chunk", tuning.stage_chunk},
          {"streaming_from", tuning.streaming_from},
          {"segment", tuning.segment},
          {"spins", tuning.spins},
          {"source", tuning.source}};
}

Tuning tuning_from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw DataError("a tuning is a JSON object");
  auto rest = json;
  if (take<std::string>(rest, "format") != kFormat) throw DataError(fmt::format("tuning is not of format {}", kFormat));
  Tuning tuning;
  tuning.model = link_model_from_json(take<nlohmann::json>(rest, "model"));
  tuning.inline_limit = take<std::size_t>(rest, "inline_limit");
  tuning.stage_chunk = take<std::size_t>(rest, "stage_chunk");
  tuning.streaming_from = take<std::size_t>(rest, "streaming_from");
  tuning.segment = take<std::size_t>(rest, "segment");
  tuning.spins = take<int>(rest, "spins");
  tuning.source = take<std::string>(rest, "source");
  if (!rest.empty()) throw DataError(fmt::format("tuning has an unknown key '{}'", clipped(rest.begin().key())));
  if (tuning.stage_chunk < 4096 || tuning.stage_chunk > (64 << 20))
    throw DataError("tuning: stage_chunk must be 4K to 64M");
  if (tuning.spins < 0 || tuning.spins > 10'000'000) throw DataError("tuning: spins must be 0 to 10,000,000");
  return tuning;
}

namespace {

// What an older version kept is as good as nothing.
bool of_another_version(const nlohmann::json& json) {
  if (!json.is_object() || !json.contains("format") || !json["format"].is_string()) return false;
  const auto format = json["format"].get<std::string>();
  return format.starts_with(kFormats) && format != kFormat;
}

}  // namespace

std::string machine_fingerprint() {
  auto text = fmt::format("{}|{}|{}", key_of(this_cpu()), std::thread::hardware_concurrency(), memory_of_host());
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

std::string tuning_path(std::string_view transport) {
  return cache_folder() / "tune" / machine_fingerprint() / fmt::format("{}.json", transport);
}

std::optional<Tuning> load_tuning(std::string_view transport) {
  const auto path = tuning_path(transport);
  std::ifstream file(path);
  if (!file) return std::nullopt;
  constexpr std::size_t kMost = 1 << 20;
  std::string text(kMost + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  try {
    if (text.size() > kMost) throw DataError("is larger than 1 MiB");
    const nlohmann::json json = parse_json(text, "its JSON");
    if (of_another_version(json)) return std::nullopt;
    return tuning_from_json(json);
  } catch (const std::exception& error) {
    throw DataError(fmt::format("{}: {}; remove it or run 'trireme tune' again", path, error.what()));
  }
}

void save_tuning(const Tuning& tuning, std::string_view transport) {
  const fs::path path = tuning_path(transport);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  write_atomically(path, to_json(tuning).dump(2) + "\n");
}

}  // namespace trireme
