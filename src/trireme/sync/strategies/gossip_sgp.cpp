// Stochastic gradient push (Assran et al., 2019): push-sum on a directed graph that changes with the step. With a
// weight w_i that begins at 1, and P column-stochastic,
//   x_i ← Σ_j P_ij x_j − η g_i(z_i)        w_i ← Σ_j P_ij w_j        z_i = x_i / w_i
// Nobody needs to know who pushes to whom for the sums to be kept: Σ w_i is the number of workers, and Σ x_i moves by
// the steps alone. Dividing by w takes out the bias of those who are pushed to more often. Forward runs on z. As in
// D-PSGD, x travels while this worker computes. A model sent per target and step. Σ x_i / N is the model.
#include "trireme/sync/exchange/under_way.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/graph.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

Graph push_graph_of(const Values& values, int ranks, std::uint64_t seed) {
  return {parse_shape(values.text("graph")), ranks, seed, static_cast<int>(values.integer("peers"))};
}

class GossipSgp : public OneLearner {
 public:
  GossipSgp(Communicator& world, Graph graph) : OneLearner(world), graph_(std::move(graph)) {}

  void start() override {
    x_ = FlatVector(world_, weights_);
    w_.assign(1, 1.0);
  }

  void before_forward(const Step& step) override {
    sources_ = graph_.sources(world_.rank(), step.number);
    while (inbox_.size() < sources_.size()) inbox_.push_back({FlatVector(world_, x_.size()), std::vector<double>(1)});
    const auto tag = static_cast<std::uint64_t>(step.number);
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      under_way_.add(world_.recv_async(inbox_[k].x.span(), sources_[k], tag));
      under_way_.add(world_.recv_async(inbox_[k].w, sources_[k], tag));
    }
    for (int target : graph_.targets(world_.rank(), step.number)) {
      under_way_.add(world_.send_async(x_.span(), target, tag));
      under_way_.add(world_.send_async(w_, target, tag));
      report_.bytes_sent += x_.span().size_bytes() + sizeof(double);
    }
  }

  void abandon(const Step&) override { under_way_.wait(); }

  void after_backward(const Step& step) override {
    {
      Waiting waiting(report_);
      under_way_.wait();
    }
    const double kept = graph_.share(world_.rank(), step.number);
    for (float& x : x_.span()) x *= static_cast<float>(kept);
    w_[0] *= kept;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const double share = graph_.share(sources_[k], step.number);
      const auto theirs = inbox_[k].x.span();
      for (std::size_t i = 0; i < x_.size(); ++i) x_[i] += static_cast<float>(share) * theirs[i];
      w_[0] += share * inbox_[k].w[0];
    }
    for (std::size_t i = 0; i < x_.size(); ++i) weights_[i] = debiased(i);
  }

  // The optimizer has moved z; x moves as far.
  void after_step(const Step&) override {
    for (std::size_t i = 0; i < x_.size(); ++i) {
      x_[i] += weights_[i] - debiased(i);
      weights_[i] = debiased(i);
    }
  }

  void finish() override {
    Waiting waiting(report_);
    world_.all_reduce(x_.span(), Op::avg);
    w_[0] = 1;
    copy(x_.span(), weights_);
  }

  std::vector<Kept> state() override { return {{"x", x_.span(), /*alike=*/false}}; }
  std::vector<double> numbers() const override { return w_; }
  void set_numbers(std::span<const double> numbers) override {
    const double w = only_of(numbers);
    if (!(w > 0)) throw DataError("the weight of push-sum that was kept is not above 0");
    w_[0] = w;
  }

  void model(std::span<float> out) override {
    world_.all_reduce(x_.span(), out, Op::avg);
    report_.consensus = distance_to(world_, out, weights_);
  }

 private:
  float debiased(std::size_t i) const { return x_[i] / static_cast<float>(w_[0]); }  // z

  struct Message {
    FlatVector x;
    std::vector<double> w;  // one number, as a message is a view of many
  };
  const Graph graph_;
  FlatVector x_;
  std::vector<double> w_;
  std::vector<Message> inbox_;
  // Of this step.
  std::vector<int> sources_;
  UnderWay under_way_{world_};
};

}  // namespace

StrategyKind gossip_sgp() {
  return {
      .name = "gossip-sgp",
      .summary = "synchronous pushing to neighbours on a directed graph (push-sum)",
      .settings = {{"graph", "exponential", "who is pushed to", one_of(shape_names())},
                   {"peers", "1", "how many are pushed to each step (exponential, random)", whole_number(1, 64)}},
      .proven = StrategyKind::Proven::speedup,
      .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
        return std::make_unique<GossipSgp>(context.world, push_graph_of(values, context.world.size(), context.seed));
      },
      .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
        ExchangePlan exchange_plan;
        const auto targets = push_graph_of(values, at.ranks, at.seed).targets(at.rank, at.step);
        for (int target : targets) {
          exchange_plan.push_back(send(Exchange::Of::model, target, Moment::before_forward, Moment::after_backward));
          exchange_plan.push_back(send(Exchange::Of::number, target, Moment::before_forward, Moment::after_backward));
        }
        // As many are mixed in as are sent, on average.
        exchange_plan.push_back(late(pass(Moment::after_backward, 2 + 3 * static_cast<double>(targets.size()))));
        exchange_plan.push_back(late(copies(Moment::after_backward, 1)));
        exchange_plan.push_back(pass(Moment::after_step, 4));
        return exchange_plan;
      }};
}

}  // namespace trireme::sync
