#include "trireme/ops/recurrent/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::ops {

RecurrentSchedule make_recurrent_schedule(int64_t layers, int64_t steps, int64_t batch, int64_t parts, int64_t chunk) {
  parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(batch, 1));
  chunk = std::clamp<int64_t>(chunk, 1, std::max<int64_t>(steps, 1));
  const int64_t chunks = (steps + chunk - 1) / chunk;
  RecurrentSchedule schedule;
  schedule.wavefront = chunks > 1 && layers > 1;
  if (!schedule.wavefront) {
    schedule.name = fmt::format("batch in {}", parts);
  } else {
    schedule.name = fmt::format("layers, {} steps a wave, batch in {}", chunk, parts);
  }
  const int64_t stages = schedule.wavefront ? chunks : 1, stride = schedule.wavefront ? chunk : steps;
  for (int64_t wave = 0; wave < layers + stages - 1; ++wave) {
    std::vector<RecurrentTask>& tasks = schedule.waves.emplace_back();
    for (int64_t layer = std::max<int64_t>(0, wave - stages + 1); layer <= std::min(wave, layers - 1); ++layer) {
      const int64_t first = (wave - layer) * stride;
      for (int64_t part = 0; part < parts; ++part) {
        tasks.push_back({.layer = layer,
                         .first = first,
                         .last = std::min(first + stride, steps),
                         .row = batch * part / parts,
                         .row_end = batch * (part + 1) / parts});
      }
    }
  }
  return schedule;
}

RecurrentSchedule choose_recurrent_schedule(int64_t layers, int64_t steps, int64_t batch, int64_t threads) {
  constexpr int64_t kFewestRows = 4, kWaves = 8;
  const int64_t parts = std::clamp<int64_t>(batch / kFewestRows, 1, threads);
  const bool spare = threads >= 2 * parts && layers > 1;
  return make_recurrent_schedule(layers, steps, batch, parts, spare ? std::max<int64_t>(1, steps / kWaves) : steps);
}

}  // namespace trireme::ops
