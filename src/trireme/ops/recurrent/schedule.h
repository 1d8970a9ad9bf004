// In which order, and on how many cores, a stack of recurrent layers computes its steps: data, made here, run by
// recurrent.cpp. Two ways that can be mixed:
//   by batch   each core takes some rows of the batch through all steps of a layer; cores never wait within a layer
//   by layers  a wavefront: while one core is in layer 1's first steps, another is in layer 0's next ones
// Forward runs the waves in order, backward in reverse order, for what depends on what is reversed too.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::ops {

// Steps [first, last) of the rows [row, row_end) of one layer, in order.
struct RecurrentTask {
  int64_t layer = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t row = 0;
  int64_t row_end = 0;
};

// Tasks beside each other; waves one after the other.
struct RecurrentSchedule {
  std::string name;
  bool wavefront = false;  // layers above the first make their input products step by step
  std::vector<std::vector<RecurrentTask>> waves;
};

// `parts` of the batch; with chunk < steps a wavefront over the layers, `chunk` steps a wave.
RecurrentSchedule make_recurrent_schedule(int64_t layers, int64_t steps, int64_t batch, int64_t parts, int64_t chunk);

// What was fastest where it was measured (`trireme bench ops --op lstm`): by batch while each core gets rows enough,
// and cores left over go to other layers.
RecurrentSchedule choose_recurrent_schedule(int64_t layers, int64_t steps, int64_t batch, int64_t threads);

}  // namespace trireme::ops
