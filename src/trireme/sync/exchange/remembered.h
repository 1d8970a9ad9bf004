// What the codecs of one worker remember, by name: "<parameter>.error", "<parameter>.again.rest". With it a run that
// was stopped goes on exactly; with another number of workers none of the errors carried is lost.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trireme/sync/exchange/compressed_mean.h"

namespace trireme::sync {

struct Remembered {
  std::map<std::string, std::vector<float>> floats;     // by element
  std::map<std::string, std::vector<std::byte>> bytes;  // the rest
  bool empty() const { return floats.empty() && bytes.empty(); }
};

// While no exchange is under way.
Remembered remembered(CompressedMean& codes);
// Names of the tensors of which nothing, or not all, was there: they begin from nothing as far as that is missing, as
// where the codec has changed. Throws DataError that names the tensor where what is there is broken.
std::vector<std::string> recall(CompressedMean& codes, const Remembered& kept);
// What this worker goes on with after other workers, in the order of their ranks, remembered these: an equal part of
// the errors and velocities of all, so that their sum is the same in what comes next; of merged shares its own; of the
// rest the first worker's.
Remembered shared_out(CompressedMean& codes, std::span<const Remembered> others);

}  // namespace trireme::sync
