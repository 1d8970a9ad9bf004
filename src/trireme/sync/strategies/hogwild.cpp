// HOGWILD! (Niu et al., 2011): the workers are threads, and the weights are the same memory for all of them. Each reads
// and writes them whenever it likes, without locks:
//   w ← w − η·(1/N)·g_i(ŵ)
// ŵ is what lay there while g_i was computed. 1/N, so that N steps move as far as one step with the mean. Races are by
// design: an update may be lost where two write the same number at once, which is rare and does no harm. Nothing is
// sent.
#include "trireme/sync/strategies/hogwild.h"

#include <atomic>
#include <new>

#include "trireme/base/error.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

void require_threads(Communicator& world) {
  if (world.size() > 1 && world.transport() != "inproc") {
    throw ConfigError("hogwild needs workers that share memory: use --launch threads");
  }
}

// Everyone gets rank 0's pointer. Collective.
template <typename T>
std::shared_ptr<T> share(Communicator& world, std::shared_ptr<T> mine) {
  std::vector<std::int64_t> address{reinterpret_cast<std::intptr_t>(&mine)};
  world.broadcast(address, 0);
  auto shared = *reinterpret_cast<const std::shared_ptr<T>*>(address[0]);
  world.barrier();  // rank 0's pointer lives until all have copied it
  return shared;
}

class Hogwild : public OneLearner {
 public:
  explicit Hogwild(Communicator& world) : OneLearner(world) { require_threads(world); }

  std::shared_ptr<float[]> weights_memory(std::size_t count) override { return shared_weights(world_, count); }

  void start() override {
    std::vector<std::int64_t> address{reinterpret_cast<std::intptr_t>(weights_.data())};
    world_.broadcast(address, 0);
    TRIREME_CHECK(address[0] == reinterpret_cast<std::intptr_t>(weights_.data()));
    updates_ = share(world_, std::make_shared<std::atomic<std::int64_t>>(0));
  }
  void before_forward(const Step&) override { seen_ = updates_->load(std::memory_order_relaxed); }
  void after_step(const Step&) override { ++report_.stale[updates_->fetch_add(1, std::memory_order_relaxed) - seen_]; }
  void finish() override { world_.barrier(); }
  // Nobody trains while it is read.
  void model(std::span<float> out) override {
    world_.barrier();
    copy(weights_, out);
    world_.barrier();
  }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> updates_;  // of all workers
  std::int64_t seen_ = 0;
};

}  // namespace

std::shared_ptr<float[]> shared_weights(Communicator& world, std::size_t count) {
  require_threads(world);
  std::shared_ptr<float[]> mine;
  if (world.rank() == 0) {
    // Not from rank 0's heap, which would have to outlive everyone's end of the world: threads read any memory.
    constexpr std::align_val_t kLine{64};
    mine.reset(new (kLine) float[count](), [](float* memory) { ::operator delete[](memory, kLine); });
  }
  return share(world, mine);
}

StrategyKind hogwild() {
  return {.name = "hogwild",
          .summary = "workers as threads update shared weights without locks",
          .settings = {},
          .traits = {.moves = Traits::Moves::nothing,
                     .shares_gradient = true,
                     .own_pace = true,
                     .shares_memory = true,
                     .repeatable = false},
          .make = [](const Values&, const Context& context) -> std::unique_ptr<Strategy> {
            return std::make_unique<Hogwild>(context.world);
          },
          .exchange_plan = [](const Values&, const ExchangePlanAt&) -> ExchangePlan {
            return {{.what = Exchange::What::shared, .start = Moment::before_forward, .wait = Moment::after_step}};
          }};
}

}  // namespace trireme::sync
