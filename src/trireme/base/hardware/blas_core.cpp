#include "trireme/base/hardware/blas_core.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/cache_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "OPENBLAS_CORETYPE";
constexpr double kWorthIt = 1.1;

fs::path blas_core_file() { return cache_folder() / "tune" / ("cpu-" + key_of(this_cpu())) / "blas.json"; }

// A library that was replaced is another one.
std::uintmax_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

void keep(const BlasCore& core) {
  const auto path = blas_core_file();
  nlohmann::json gflops = nlohmann::json::object();
  for (const auto& [name, value] : core.gflops) gflops[name] = value;
  const nlohmann::json json{{"format", "trireme-blas-1"},
                            {"cpu", this_cpu().model},
                            {"library", core.library},
                            {"bytes", size_of_file(core.library)},
                            {"picked", core.picked},
                            {"best", core.best},
                            {"gflops", gflops}};
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  try {
    AtomicFile file(path);
    file.write(json.dump(2) + "\n");
    file.commit();
  } catch (const Error&) {
  }
}

}  // namespace

namespace {

bool has_avx512(const Cpu& cpu) {
  return std::ranges::all_of(std::array{"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"},
                             [&](const char* set) { return cpu.has(set); });
}

// Core types with the widest vectors this CPU has.
bool made_for(const Cpu& cpu, std::string_view core) {
  constexpr std::array<std::string_view, 3> kWide{"Sapphirerapids", "Cooperlake", "SkylakeX"};
  constexpr std::array<std::string_view, 3> kHalf{"Haswell", "Zen", "Excavator"};
  return std::ranges::find(kWide, core) != kWide.end() ||
         (!has_avx512(cpu) && std::ranges::find(kHalf, core) != kHalf.end());
}

}  // namespace

std::vector<std::string> core_types_for(const Cpu& cpu) {
  if (has_avx512(cpu)) {
    if (cpu.has("avx512_bf16")) return {"Cooperlake", "SkylakeX", "Haswell"};
    return {"SkylakeX", "Haswell"};
  }
  if (cpu.has("avx2") && cpu.has("fma")) return {"Haswell", "Zen"};
  return {};
}

BlasCore find_blas_core(const Cpu& cpu, const BlasProber& probe) {
  const auto itself = probe("", false);
  if (!itself) return {};
  BlasCore found{itself->library, itself->core, itself->core, {}};
  const auto candidates = core_types_for(cpu);
  if (candidates.empty() || made_for(cpu, itself->core)) return found;
  double best = 0;
  if (const auto measured = probe("", true)) {
    found.gflops.emplace_back(measured->core, measured->gflops);
    best = measured->gflops * kWorthIt;
  }
  for (const auto& core : candidates) {
    if (core == itself->core) continue;
    const auto measured = probe(core, true);
    if (!measured || measured->core != core) continue;  // it has taken another
    found.gflops.emplace_back(core, measured->gflops);
    if (measured->gflops <= best) continue;
    best = measured->gflops;
    found.best = core;
  }
  return found;
}

std::optional<BlasCore> stored_blas_core() {
  std::ifstream file(blas_core_file());
  if (!file) return std::nullopt;
  std::string text(1 << 16, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format") != "trireme-blas-1") return std::nullopt;
    BlasCore core{json.at("library"), json.at("picked"), json.at("best"), {}};
    for (const auto& [name, value] : json.at("gflops").items()) core.gflops.emplace_back(name, value.get<double>());
    if (core.library.empty() || json.at("bytes").get<std::uintmax_t>() != size_of_file(core.library))
      return std::nullopt;
    return core;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // damaged, or another version's: found anew
  }
}

BlasCore blas_core() {
  if (auto stored = stored_blas_core()) return *stored;
  if (blas_in_use() != "none") return {};  // a child would inherit it, and what it has picked
  auto found = find_blas_core(this_cpu());
  if (!found.library.empty()) keep(found);
  return found;
}

bool set_blas_core() {
  if (const char* set = std::getenv(kVariable); set != nullptr && *set != 0) return false;
  const auto core = blas_core();
  if (core.best == core.picked) return false;
  return setenv(kVariable, core.best.c_str(), 1) == 0;
}

}  // namespace trireme
