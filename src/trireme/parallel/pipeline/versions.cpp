#include "trireme/parallel/pipeline/versions.h"

#include "trireme/base/error.h"
#include "trireme/parallel/pipeline/version_counter.h"

namespace trireme::parallel {

WeightVersions::WeightVersions(const nn::Named& parameters) {
  Version first;
  for (const auto& [name, tensor] : parameters) {
    parameters_.push_back(tensor);
    first.values.push_back(tensor.variable_data());
  }
  versions_[0] = std::move(first);
}

void WeightVersions::hold(std::int64_t version) { ++versions_.at(version).holders; }

void WeightVersions::let_go(std::int64_t version) {
  TRIREME_CHECK(--versions_.at(version).holders >= 0);
  drop_unused();
}

void WeightVersions::use(std::int64_t version) {
  const auto& values = versions_.at(version).values;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (version != in_use_) parameters_[k].set_data(values[k]);
    set_version(parameters_[k], 0);  // these are the values that a forward saw
  }
  in_use_ = version;
}

void WeightVersions::begin_update() {
  use(newest_);
  auto& before = versions_.at(newest_);
  Version next;
  const bool copies = before.holders > 0 || needed_from_ <= newest_;
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    next.values.push_back(copies ? before.values[k].clone() : before.values[k]);
  }
  versions_[++newest_] = std::move(next);
  use(newest_);
  drop_unused();
}

void WeightVersions::forget_before(std::int64_t version) {
  needed_from_ = version;
  drop_unused();
}

void WeightVersions::drop_unused() {
  std::erase_if(versions_, [&](const auto& entry) {
    return entry.first < needed_from_ && entry.first != newest_ && entry.second.holders == 0;
  });
}

}  // namespace trireme::parallel
