// AD-PSGD (Lian et al., 2018): everyone trains at its own pace, and pairs average now and then:
//   x_i, x_j ← (x_i + x_j)/2   while i computes,   x_i ← x_i − η g_i(x̂_i)
// where x̂_i is what i read before it began. Even ranks are active: each step they ask one passive neighbour drawn at
// random. Odd ranks are passive: a thread answers at once, even while the training thread is in the middle of a step,
// so nobody waits for a slow one. An active rank sends a model per step, a passive one a model per answer. The mean of
// all is the model.
//
// Invariant of a passive rank: x_ is guarded by mutex_; each average takes from one side what it gives to the other,
// and a step adds what the optimizer did to its own copy: the sum over all ranks changes by the steps alone.
#include "trireme/base/mutex.h"
#include "trireme/sync/exchange/answering.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/graph.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

std::vector<int> partners_of(const Values& values, int rank, int ranks, std::uint64_t seed) {
  return Graph(parse_shape(values.text("graph")), ranks, seed).partners(rank);
}

// Whom an active rank asks in a step. It has partners.
int asked(const std::vector<int>& partners, int rank, std::uint64_t step, std::uint64_t seed) {
  return partners[draw(seed, static_cast<std::uint64_t>(rank), step) % partners.size()];
}

class GossipAdpsgd : public OneLearner {
 public:
  GossipAdpsgd(Communicator& world, std::vector<int> partners, std::uint64_t seed)
      : OneLearner(world), active_(Graph::active(world.rank())), partners_(std::move(partners)), seed_(seed) {}

  void start() override {
    if (!active_) {
      MutexLock lock(mutex_);
      x_ = FlatVector(world_, weights_);
      read_ = FlatVector(world_, weights_);
    }
    std::vector<bool> passive;
    for (int rank = 0; rank < world_.size(); ++rank) passive.push_back(!Graph::active(rank));
    answering_ = std::make_unique<Answering>(world_, std::move(passive),
                                             [this](int, std::span<std::byte> message) { average_with(message); });
  }

  void before_forward(const Step&) override {
    if (active_) {
      if (partners_.empty()) return;
      answering_->start(asked(partners_, world_.rank(), steps_, seed_), std::as_writable_bytes(weights_));
      return;
    }
    MutexLock lock(mutex_);
    copy(x_.span(), weights_);
    copy(x_.span(), read_.span());
    averaged_since_ = 0;
  }

  // Whom it asked has mixed already: that stays.
  void abandon(const Step& step) override { after_backward(step); }

  void after_backward(const Step&) override {
    if (!active_ || partners_.empty()) return;
    Waiting waiting(report_);
    answering_->finish();
  }

  void after_step(const Step&) override {
    ++steps_;
    if (active_) {
      ++report_.stale[partners_.empty() ? 0 : 1];
      return;
    }
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < weights_.size(); ++i) x_[i] += weights_[i] - read_[i];
    ++report_.stale[averaged_since_];
  }

  void finish() override {
    Waiting waiting(report_);
    answering_->close();
    if (!active_) copy(passive_model(), weights_);
    world_.all_reduce(weights_, Op::avg);
    if (!active_) copy(weights_, passive_model());
  }

  void model(std::span<float> out) override {
    world_.barrier();  // whoever might still have asked has come here
    const auto x = active_ ? weights_ : passive_model();
    report_.consensus = mean_of_all(world_, x, out);
    world_.barrier();  // nobody asks while x is being read
  }

  Report report() const override {
    Report result = report_;
    if (answering_) result.bytes_sent = answering_->bytes_sent();
    return result;
  }

 private:
  // For whoever knows that nobody asks.
  std::span<float> passive_model() {
    MutexLock lock(mutex_);
    return x_.span();
  }
  void average_with(std::span<std::byte> message) {
    if (message.size() != weights_.size_bytes()) throw ProtocolError("a neighbour's model has another size");
    auto* theirs = reinterpret_cast<float*>(message.data());
    MutexLock lock(mutex_);
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] = theirs[i] = 0.5f * (x_[i] + theirs[i]);
    ++averaged_since_;
  }

  const bool active_;
  const std::vector<int> partners_;
  const std::uint64_t seed_;
  std::uint64_t steps_ = 0;
  FlatVector read_;  // passive: x̂, to see what the optimizer did
  Mutex mutex_;
  FlatVector x_ TRIREME_GUARDED_BY(mutex_);                     // passive
  std::int64_t averaged_since_ TRIREME_GUARDED_BY(mutex_) = 0;  // averages since x̂ was read
  std::unique_ptr<Answering> answering_;
};

}  // namespace

StrategyKind gossip_adpsgd() {
  return {.name = "gossip-adpsgd",
          .summary = "asynchronous averaging in pairs; nobody waits for the slow",
          .settings = {{"graph", "random", "who may be asked", one_of(shape_names())}},
          .traits = {.own_pace = true, .repeatable = false},
          .proven = StrategyKind::Proven::speedup,
          .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
            auto& world = context.world;
            return std::make_unique<GossipAdpsgd>(world, partners_of(values, world.rank(), world.size(), context.seed),
                                                  context.seed);
          },
          .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
            if (!Graph::active(at.rank)) return {pass(Moment::before_forward, 4), pass(Moment::after_step, 4)};
            const auto partners = partners_of(values, at.rank, at.ranks, at.seed);
            if (partners.empty()) return {};
            return {{.what = Exchange::What::ask,
                     .start = Moment::before_forward,
                     .wait = Moment::after_backward,
                     .peer = asked(partners, at.rank, static_cast<std::uint64_t>(at.step), at.seed)}};
          }};
}

}  // namespace trireme::sync
