// Reads the tensors of a checkpoint without the code that wrote it: the judge of `trireme bench equal` shares nothing
// with whom it judges. The format is in docs/checkpoints.md.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trireme::bench {

struct ReadTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

// Those whose names begin with one of the prefixes, of F32, F64 or I64. Throws DataError naming file and tensor.
std::map<std::string, ReadTensor> read_checkpoint(const std::string& path, const std::vector<std::string>& prefixes);

// The last step's file of a run's folder. Throws DataError where there is none.
std::string newest_checkpoint(const std::string& folder);

struct Distance {
  double off_by = 0;  // of the worst tensor: max|Δ| / max|reference|; infinite where one is missing or of another shape
  std::string tensor;  // the worst
};
Distance distance(const std::map<std::string, ReadTensor>& found, const std::map<std::string, ReadTensor>& reference);

}  // namespace trireme::bench
