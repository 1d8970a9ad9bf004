#include "trireme/operators/conv_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/base/mutex.h"
#include "trireme/ops/conv/choice.h"
#include "trireme/ops/conv/shape_text.h"
#include "trireme/ops/parallel.h"

namespace trireme::operators {
namespace {

constexpr std::size_t kLikely = 4;  // of ours; guesses are seldom off by more places

}  // namespace

ConvChoice::ConvChoice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings)
    : shape_(shape), pass_(pass) {
  std::vector<Trial::Candidate> candidates;
  const auto add = [&](const ops::ConvAlgorithm* algorithm, double predicted) {
    algorithms_.push_back(algorithm);
    candidates.push_back({std::string(name_of(algorithm)), predicted});
  };
  const auto* reference = ops::conv_algorithms().front();
  if (settings.operators == Operators::reference) {
    add(reference, 0);
  } else {
    add(nullptr, 0);
    const bool small = shape.flops() < settings.least_flops;
    for (const auto& pick : ops::guess_conv(shape, pass, settings.memory > 0 ? settings.memory : ops::kNoLimit)) {
      if (!small && pick.algorithm != reference && algorithms_.size() <= kLikely) add(pick.algorithm, pick.predicted);
    }
  }
  trial_ = std::make_unique<Trial>(
      fmt::format("conv2d {} {}, threads {}", ops::text_of(shape), ops::name(pass), ops::threads()),
      std::move(candidates), settings);
}

torch::Tensor ConvChoice::run(const ConvPass& pass) {
  return trial_->run([&](std::size_t candidate) { return operators::run(pass, algorithms_[candidate]); });
}

Use ConvChoice::use() const {
  Use use = trial_->use();
  use.operation = "conv2d";
  use.shape = ops::text_of(shape_);
  use.pass = ops::name(pass_);
  return use;
}

std::shared_ptr<ConvChoice> conv_choice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings) {
  struct Known {
    ops::ConvShape shape;
    ops::Pass pass;
    Settings settings;
    int threads;
    std::shared_ptr<ConvChoice> choice;
  };
  static Mutex mutex;
  static std::vector<Known> all;
  const int threads = ops::threads();
  MutexLock lock(mutex);
  for (const Known& known : all) {
    if (known.pass == pass && known.shape == shape && known.threads == threads && known.settings == settings) {
      return known.choice;
    }
  }
  auto made = std::make_shared<ConvChoice>(shape, pass, settings);
  all.push_back({shape, pass, settings, threads, made});
  return made;
}

}  // namespace trireme::operators
