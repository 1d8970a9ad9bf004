// How gradients are exchanged, for callers who may say more than programs: to whom they go, or that they stay.
#pragma once
#include <optional>
#include <span>

#include "trireme/grad/data_parallel.h"

namespace trireme {

struct ExchangeOptions : DataParallelOptions {
  ExchangeOptions() = default;
  explicit ExchangeOptions(const DataParallelOptions& options) : DataParallelOptions(options) {}

  // In place of `hook`: somebody else's exchange, which must outlive the DataParallel.
  sync::BucketExchange* exchange = nullptr;
  // Gradients stay with this rank: nothing is sent, and nothing collective is done. With memory of as many numbers as
  // the model has, they lie there in the order of the parameters, zeros where there is none; else where autograd has
  // left them.
  struct Stay {
    std::span<float> memory;
  };
  std::optional<Stay> stay;
};

}  // namespace trireme
