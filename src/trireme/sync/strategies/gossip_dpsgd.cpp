// D-PSGD (Lian et al., 2017): each worker averages with its neighbours on a graph and steps on its own:
//   x_i ← Σ_j W_ij x_j − η g_i(x_i)
// W is doubly stochastic (Metropolis–Hastings), so the mean of all moves by the mean of the gradients' steps and by
// nothing else. The neighbours' weights travel while this worker computes: sent before forward, mixed in before the
// optimizer's step. A model sent per neighbour and step. The mean of all is the model.
#include "trireme/sync/exchange/under_way.h"
#include "trireme/sync/flat.h"
#include "trireme/sync/strategies/graph.h"
#include "trireme/sync/strategies/kinds.h"
#include "trireme/sync/strategies/mean.h"
#include "trireme/sync/strategies/one_learner.h"

namespace trireme::sync {
namespace {

Graph undirected_graph_of(const Values& values, int ranks, std::uint64_t seed) {
  return {parse_shape(values.text("graph")), ranks, seed};
}

class GossipDpsgd : public OneLearner {
 public:
  GossipDpsgd(Communicator& world, Graph graph) : OneLearner(world), graph_(std::move(graph)) {}

  void before_forward(const Step& step) override {
    neighbours_ = graph_.neighbours(world_.rank(), step.number);
    while (inbox_.size() < neighbours_.size()) inbox_.emplace_back(world_, weights_.size());
    const auto tag = static_cast<std::uint64_t>(step.number);
    for (std::size_t k = 0; k < neighbours_.size(); ++k) {
      under_way_.add(world_.recv_async(inbox_[k].span(), neighbours_[k], tag));
      under_way_.add(world_.send_async(weights_, neighbours_[k], tag));
      report_.bytes_sent += weights_.size_bytes();
    }
  }

  void abandon(const Step&) override { under_way_.wait(); }

  void after_backward(const Step& step) override {
    {
      Waiting waiting(report_);
      under_way_.wait();
    }
    double own = 1;
    for (int neighbour : neighbours_) own -= graph_.weight(world_.rank(), neighbour, step.number);
    for (float& x : weights_) x *= static_cast<float>(own);
    for (std::size_t k = 0; k < neighbours_.size(); ++k) {
      const auto weight = static_cast<float>(graph_.weight(world_.rank(), neighbours_[k], step.number));
      const auto theirs = inbox_[k].span();
      for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] += weight * theirs[i];
    }
  }

  void finish() override {
    Waiting waiting(report_);
    world_.all_reduce(weights_, Op::avg);
  }
  void model(std::span<float> out) override { report_.consensus = mean_of_all(world_, weights_, out); }

 private:
  const Graph graph_;
  std::vector<FlatVector> inbox_;
  // Of this step.
  std::vector<int> neighbours_;
  UnderWay under_way_{world_};
};

}  // namespace

StrategyKind gossip_dpsgd() {
  return {
      .name = "gossip-dpsgd",
      .summary = "synchronous averaging with neighbours on a graph",
      .settings = {{"graph", "ring", "who are neighbours", one_of(shape_names())}},
      .proven = StrategyKind::Proven::speedup,
      .make = [](const Values& values, const Context& context) -> std::unique_ptr<Strategy> {
        return std::make_unique<GossipDpsgd>(context.world,
                                             undirected_graph_of(values, context.world.size(), context.seed));
      },
      .exchange_plan = [](const Values& values, const ExchangePlanAt& at) -> ExchangePlan {
        ExchangePlan exchange_plan;
        for (int neighbour : undirected_graph_of(values, at.ranks, at.seed).neighbours(at.rank, at.step)) {
          exchange_plan.push_back(send(Exchange::Of::model, neighbour, Moment::before_forward, Moment::after_backward));
        }
        const auto mixed = static_cast<double>(exchange_plan.size());
        exchange_plan.push_back(late(pass(Moment::after_backward, 2 + 3 * mixed)));
        return exchange_plan;
      }};
}

}  // namespace trireme::sync
