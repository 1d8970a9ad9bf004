#include "trireme/cli/bench/ops/op_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "trireme/base/clock.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/host_fields.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/parallel.h"

namespace trireme::bench {

double OpRow::p50() const { return median(seconds); }

std::vector<OpRow> measure_rivals(const std::vector<OpRival>& rivals, int rounds) {
  constexpr double kShortestTurn = 50e-6;
  constexpr double kMostCalls = 1000;
  std::vector<OpRow> rows;
  std::vector<int> calls(rivals.size(), 1);
  for (const auto& [peer, version, it] : rivals) rows.push_back({it.implementation, peer, version, it.workspace, {}});
  for (int round = -2; round < rounds; ++round) {
    for (std::size_t i = 0; i < rivals.size(); ++i) {
      const double begin = now_seconds();
      for (int call = 0; call < calls[i]; ++call) rivals[i].contender.run();
      const double seconds = (now_seconds() - begin) / calls[i];
      if (round == -1) calls[i] = static_cast<int>(std::clamp(std::ceil(kShortestTurn / seconds), 1.0, kMostCalls));
      if (round >= 0) rows[i].seconds.push_back(seconds);
    }
  }
  return rows;
}

void OpRowPrinter::header(int rounds) const {
  if (json_) return;
  fmt::print(
      "{} thread{} of {}, peak {:.0f} GFLOP/s, memory copies at {:.1f} GB/s; median of {} rounds in turns\n"
      "speeds count the definition's operations, and each tensor moved once\n"
      "{:<13} {:<38} {:<8} {:<27} {:>10} {:>8} {:>7} {:>7} {:>7} {:>9}\n",
      ops::threads(), ops::threads() == 1 ? "" : "s", ops::instruction_set(), peaks_.flops * 1e-9, peaks_.bytes * 1e-9,
      rounds, "op", "shape", "pass", "implementation", "us", "GFLOP/s", "of peak", "GB/s", "of mem", "workspace");
}

void OpRowPrinter::row(const OpFamily& family, const OpPass& pass, const OpShape& shape, int layers,
                       const OpRow& row) const {
  const OpWork work = family.work(shape, pass.pass);
  const double p50 = row.p50(), flops = work.flops / p50, bytes = work.bytes / p50;
  if (json_) {
    nlohmann::ordered_json line{{"op", family.name},
                                {"pass", pass.name},
                                {"shape", family.text(shape)},
                                {"layers", layers},
                                {"implementation", row.implementation},
                                {"us_p50", p50 * 1e6},
                                {"gflops", flops * 1e-9},
                                {"of_peak", flops / peaks_.flops}};
    if (family.memory_bound) {
      line["gbytes_s"] = bytes * 1e-9;
      line["of_memory"] = bytes / peaks_.bytes;
    }
    line["bytes_workspace"] = row.workspace;
    line["threads"] = ops::threads();
    line["instructions"] = ops::instruction_set();
    line["peer"] = row.peer;
    if (!row.version.empty()) line["version"] = row.version;
    add_host(line);
    fmt::print("{}\n", line.dump());
  } else {
    const bool moves = family.memory_bound;
    fmt::print("{:<13} {:<38} {:<8} {:<27} {:>10.2f} {:>8.1f} {:>7.2f} {:>7} {:>7} {:>9}\n", family.name,
               family.text(shape), pass.name, (row.peer == "trireme" ? "" : row.peer + " ") + row.implementation,
               p50 * 1e6, flops * 1e-9, flops / peaks_.flops, moves ? fmt::format("{:.1f}", bytes * 1e-9) : "",
               moves ? fmt::format("{:.2f}", bytes / peaks_.bytes) : "",
               format_size(static_cast<std::uint64_t>(row.workspace)));
  }
  std::fflush(stdout);
}

}  // namespace trireme::bench
