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

constexpr int kLikely = 4;  // of ours; guesses are seldom off by more places

}  // namespace

ConvChoice::ConvChoice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings, bool bf16)
    : shape_(shape), pass_(pass) {
  std::vector<Trial::Candidate> candidates;
  const auto add = [&](const ConvImplementation& implementation, double predicted = 0) {
    implementations_.push_back(implementation);
    const auto* algorithm = implementation.algorithm;
    candidates.push_back({std::string(implementation.name()), predicted,
                          implementation.bf16 || (algorithm && algorithm->accuracy() == ops::Accuracy::bf16)});
  };
  const auto* reference = ops::conv_algorithms().front();
  const std::int64_t memory = settings.memory > 0 ? settings.memory : ops::kNoLimit;
  if (settings.operators == Operators::reference) {
    add({reference});
  } else {
    add({});
    const bool small = shape.flops() < settings.least_flops;
    int f32 = 0;
    for (const auto& pick :
         ops::guess_conv(shape, pass, memory, bf16 ? ops::Accuracy::bf16 : ops::Accuracy::winograd)) {
      if (small || pick.algorithm == reference) continue;
      if (pick.algorithm->accuracy() == ops::Accuracy::bf16 || f32++ < kLikely) add({pick.algorithm}, pick.predicted);
    }
    if (bf16 && !small) add({.bf16 = true});
  }
  trial_ = std::make_unique<Trial>(fmt::format("conv2d {} {}{}, threads {}", ops::text_of(shape), ops::name(pass),
                                               bf16 ? " in bf16" : "", ops::threads()),
                                   std::move(candidates), settings);
}

torch::Tensor ConvChoice::run(const ConvPass& pass) {
  return trial_->run([&](std::size_t candidate) { return operators::run(pass, implementations_[candidate]); });
}

Use ConvChoice::use() const {
  Use use = trial_->use();
  use.operation = "conv2d";
  use.shape = ops::text_of(shape_);
  use.pass = ops::name(pass_);
  return use;
}

std::shared_ptr<ConvChoice> conv_choice(const ops::ConvShape& shape, ops::Pass pass, const Settings& settings,
                                        bool bf16) {
  struct Known {
    ops::ConvShape shape;
    ops::Pass pass;
    Settings settings;
    int threads;
    bool bf16;
    std::shared_ptr<ConvChoice> choice;
  };
  static Mutex mutex;
  static std::vector<Known> all;
  const int threads = ops::threads();
  MutexLock lock(mutex);
  for (const Known& known : all) {
    if (known.pass == pass && known.shape == shape && known.threads == threads && known.bf16 == bf16 &&
        known.settings == settings) {
      return known.choice;
    }
  }
  auto made = std::make_shared<ConvChoice>(shape, pass, settings, bf16);
  all.push_back({shape, pass, settings, threads, bf16, made});
  return made;
}

}  // namespace trireme::operators
