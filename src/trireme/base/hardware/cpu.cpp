#include "trireme/base/hardware/cpu.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

#include "trireme/base/hardware/blas_core.h"
#include "trireme/base/text/text.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 18> kSets{
    "sse4_2",   "avx",         "f16c",        "fma",         "avx2",     "avx_vnni", "avx512f",  "avx512bw", "avx512dq",
    "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "asimd",    "sve"};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> caches_of_first_core() {
  std::vector<std::string> caches;
  for (int k = 0; k < 8; ++k) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", k);
    const auto type = first_line(folder + "type"), size = first_line(folder + "size");
    if (size.empty() || type == "Instruction") continue;
    caches.push_back(fmt::format("L{}{} {}", first_line(folder + "level"), type == "Data" ? "d" : "", size));
  }
  return caches;
}

}  // namespace

bool Cpu::has(std::string_view instruction_set) const {
  return std::ranges::find(instruction_sets, instruction_set) != instruction_sets.end();
}

Cpu parse_cpu(std::string_view cpuinfo) {
  Cpu cpu;
  std::istringstream lines{std::string(cpuinfo)};
  for (std::string line; std::getline(lines, line) && !line.empty();) {  // until the first processor ends
    const auto colon = line.find(':');
    if (colon == line.npos) continue;
    const auto key = line.substr(0, line.find_last_not_of(" \t", colon - (colon > 0)) + 1);
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    const auto value = begin == line.npos ? "" : line.substr(begin);
    if (key == "model name") cpu.model = printable(value);
    if (key == "vendor_id" || key == "cpu family" || key == "model" || key == "stepping" || key == "CPU implementer" ||
        key == "CPU part") {
      cpu.kind += (cpu.kind.empty() ? "" : " ") + printable(value);
    }
    if (key == "flags" || key == "Features") {
      std::istringstream words(value);
      const std::vector<std::string> all{std::istream_iterator<std::string>(words), {}};
      for (const auto set : kSets) {
        if (std::ranges::find(all, set) != all.end()) cpu.instruction_sets.emplace_back(set);
      }
    }
  }
  return cpu;
}

Cpu this_cpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string text, line;
  while (std::getline(file, line) && !line.empty()) text += line + "\n";
  auto cpu = parse_cpu(text);
  if (utsname machine{}; cpu.model.empty()) cpu.model = ::uname(&machine) == 0 ? machine.machine : "unknown processor";
  cpu.caches = caches_of_first_core();
  return cpu;
}

std::string key_of(const Cpu& cpu) {
  const auto text =
      fmt::format("{}|{}|{}|{}", cpu.model, cpu.kind, fmt::join(cpu.instruction_sets, " "), fmt::join(cpu.caches, " "));
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

NamedValues hardware() {
  const auto cpu = this_cpu();
  return {{"cpu", cpu.model},
          {"instruction_sets", fmt::format("{}", fmt::join(cpu.instruction_sets, " "))},
          {"caches", fmt::format("{}", fmt::join(cpu.caches, ", "))},
          {"blas", blas_in_use()}};
}

}  // namespace trireme
