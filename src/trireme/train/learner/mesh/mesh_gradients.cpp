#include "trireme/train/learner/mesh/mesh_gradients.h"

#include <array>
#include <chrono>
#include <cmath>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/nn/dropout.h"
#include "trireme/train/group/gather_text.h"

namespace trireme::train {

MeshGradients::MeshGradients(const Config& config, Workload& work, MeshModel& model, DataParallel* net, Scale scale)
    : config_(config),
      work_(work),
      model_(model),
      net_(net),
      sharded_(model.sharded()),
      exchange_(net ? net->gradients() : *model.sharded()),
      scale_(scale) {}

StepOutcome MeshGradients::compute(const data::Item& item, bool stop, const HoldUp& hold_up) {
  StepOutcome outcome;
  outcome.begin = now_seconds();
  loss_ = 0;
  score_ = {};
  const auto before = model_.pipeline().usage();
  if (const double seconds = hold_up ? hold_up(usual_s_) : 0; seconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    outcome.held_up_s = seconds;
  }
  last_ = batch_of(item, stop);
  tell(stop);
  const bool together = model_.gathers_batch();
  if (item.here > 0 || sharded_ || together) {  // what is gathered is gathered of everyone
    model_.pipeline().step(last_);
  } else {
    model_.pipeline().skip(last_);
  }
  if (sharded_) model_.finish_shards();

  // What the last stage knows of the replicas becomes everyone's.
  auto told = exchange_.told();
  const double whole = static_cast<double>(scale_ == Scale::share ? item.globally : item.here);
  const double share = exchange_.ranks() == 1 && item.here > 0 ? whole / static_cast<double>(item.here) : 1;
  std::vector<double> sums{told[0] * share, told[1], told[2], told[3],
                           static_cast<double>(exchange_.bad_gradients().size())};
  model_.mesh().replica().all_reduce(sums);
  outcome.loss = sums[0];
  outcome.score = {sums[1], sums[2]};
  outcome.stop = sums[3] > 0;
  bad_.clear();
  if (sums[4] > 0) name_bad();

  const auto& after = model_.pipeline().usage();
  double forward = 0;
  for (std::size_t k = 0; k < after.forward_s.size(); ++k) forward += after.forward_s[k] - before.forward_s[k];
  const double busy = after.busy_s() - before.busy_s();
  outcome.forward_s = forward;
  const double waited = after.waited_s - before.waited_s;
  const auto times = exchange_.times();
  outcome.exposed_s = waited + times.exposed;
  outcome.communication_s = waited + times.communication;
  outcome.backward_s = std::max(0.0, busy - forward);
  usual_s_ = busy;
  return outcome;
}

Pipeline::Batch MeshGradients::batch_of(const data::Item& item, bool stop) {
  Pipeline::Batch batch;
  // A replica without samples still takes part where weights are gathered on the way: with one that does not count.
  const auto& given = item.here > 0 ? item.batch : (nothing_ = work_.data.train->get(std::array<std::int64_t, 1>{0}));
  batch.input = given.input.to(work_.device);
  batch.target = given.target.to(work_.device);
  if (item.here == 0 && model_.gathers_batch()) {  // nothing of it may be gathered
    batch.input = batch.input.narrow(0, 0, 0);
    batch.target = batch.target.narrow(0, 0, 0);
  }
  const double counts = item.here > 0 ? 1 : 0;
  batch.replicas = net_;
  batch.sums_tied = !sharded_;
  // Replicas that gather each other's weights must take as many turns, also where an epoch's rest is shared unequally.
  const bool full = item.globally == config_.batch * config_.accumulate * model_.mesh().shape().data;
  if (sharded_ && !full) batch.micro_batches = 1;
  const double whole = static_cast<double>(scale_ == Scale::share ? item.globally : item.here);
  const bool together = model_.gathers_batch();
  const bool alone = !model_.pipeline().synchronous();  // a micro-batch is a batch of its own there
  const double replicas = exchange_.ranks();
  batch.loss = [this, stop, whole, alone, replicas, counts, together](const torch::Tensor& output,
                                                                      const torch::Tensor& target) {
    const double samples = static_cast<double>(target.size(0));
    auto mean = model_.loss(output, target);
    const auto score = model_.score(output.detach(), target);
    if (model_.tells() && (counts > 0 || together)) {
      loss_ += mean.item<double>() * (together ? 1 : samples / whole);
      score_.sum += score.sum;
      score_.of += score.of;
      tell(stop);
    }
    if (together) return mean;  // of all workers' samples already
    return mean * (counts * (alone ? 1 / replicas : samples / std::max(whole, 1.0)));
  };
  const auto seed = static_cast<std::uint64_t>(config_.seed);
  // Parts of a layer must draw the same.
  batch.before_forward = [this, seed, epoch = item.epoch, position = item.position](int micro_batch, int part) {
    const auto piece = (static_cast<std::uint64_t>(model_.mesh().place().data) << 40) +
                       (static_cast<std::uint64_t>(micro_batch) << 16) + static_cast<std::uint64_t>(part);
    nn::set_random(seed_of(seed, epoch, position, piece));
  };
  batch.update = [this] {
    if (update) update();
  };
  return batch;
}

void MeshGradients::tell(bool stop) {
  const std::array<float, GradientExchange::kTold> numbers{static_cast<float>(loss_), static_cast<float>(score_.sum),
                                                           static_cast<float>(score_.of), stop ? 1.0f : 0.0f};
  exchange_.tell(numbers);
}

void MeshGradients::drain() {
  if (last_.loss) model_.pipeline().drain(last_);
}

// Whoever met one says so to all workers of the replica.
void MeshGradients::name_bad() {
  constexpr std::size_t kText = 256;
  auto& replica = model_.mesh().replica();
  std::vector<std::uint8_t> mine(kText), all(kText * static_cast<std::size_t>(replica.size()));
  if (!exchange_.bad_gradients().empty()) {
    const auto& name = exchange_.bad_gradients().front().parameter;
    std::copy_n(name.begin(), std::min(name.size(), kText - 1), mine.begin());
  }
  replica.all_gather(mine, all);
  const auto& shape = model_.mesh().shape();
  for (int rank = 0; rank < replica.size(); ++rank) {
    std::string name(reinterpret_cast<const char*>(all.data() + kText * static_cast<std::size_t>(rank)));
    if (!name.empty()) bad_.push_back({model_.mesh().place().data * shape.pipe * shape.tensor + rank, name});
  }
}

void MeshGradients::clip(double most) {
  const double norm = std::sqrt(model_.square_of_gradients());
  if (!(norm > most)) return;
  if (sharded_) return sharded_->scale_gradients(most / norm);
  torch::NoGradGuard no_grad;
  for (auto& parameter : model_.part().parameters()) {
    if (parameter.grad().defined()) parameter.grad().mul_(most / norm);
  }
}

}  // namespace trireme::train
