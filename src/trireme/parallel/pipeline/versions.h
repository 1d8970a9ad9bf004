// The weights that micro-batches under way were computed with: PipeDream's weight stashing.
//
// Invariant: the memory of a version that a micro-batch may still need is never written. An update writes to a copy,
// which becomes the newest version, unless nobody needs the one before.
#pragma once
#include <map>
#include <vector>

#include "trireme/nn/chain.h"

namespace trireme::parallel {

class WeightVersions {
 public:
  explicit WeightVersions(const nn::Named& parameters);

  std::int64_t newest() const { return newest_; }
  // A micro-batch needs this version, until let_go().
  void hold(std::int64_t version);
  void let_go(std::int64_t version);
  // The parameters have the values of this version.
  void use(std::int64_t version);
  // The parameters are the newest version's, a version of their own from here on, and may be changed in place.
  void begin_update();
  // Versions before this one nobody will ask for.
  void forget_before(std::int64_t version);
  std::size_t kept() const { return versions_.size(); }

 private:
  struct Version {
    std::vector<torch::Tensor> values;
    int holders = 0;
  };
  void drop_unused();

  std::vector<torch::Tensor> parameters_;
  std::map<std::int64_t, Version> versions_;
  std::int64_t newest_ = 0, in_use_ = 0, needed_from_ = 0;
};

}  // namespace trireme::parallel
