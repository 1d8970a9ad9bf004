#include "trireme/report/profile/profiler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/base/clock.h"
#include "trireme/base/cores.h"
#include "trireme/base/median.h"
#include "trireme/cluster/profile/codec_costs.h"
#include "trireme/collective/cost/tuning.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/data/loader.h"
#include "trireme/grad/autocast.h"
#include "trireme/grad/data_parallel.h"
#include "trireme/nn/dropout.h"
#include "trireme/report/prediction/server_request.h"
#include "trireme/report/profile/gradient_noise.h"
#include "trireme/report/profile/memory_speed.h"
#include "trireme/report/profile/step_samples.h"
#include "trireme/train/learner/learner.h"
#include "trireme/train/learner/split.h"
#include "trireme/train/learner/tensor_costs.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {
namespace {

constexpr int kWarm = 3;

// One worker that trains by itself, on batches of its own.
class Subject {
 public:
  Subject(const Config& config, Workload& work, Communicator& world)
      : config_(config),
        work_(work),
        world_(world),
        alone_(world_of_one()),
        net_(*work.model, alone_, DataParallelOptions{.bucket_plan = "tensor"}),
        optimizer_(make_optimizer(config.optimizer, Learner::parameters(*work.model),
                                  {optimizer_options(config, momentum_of(config)), {}})),
        loader_(work.data.train, data::ShardedSampler({.size = work.data.train->size(),
                                                       .batch = config.batch,
                                                       .rank = world.rank(),
                                                       .workers = world.size(),
                                                       .seed = static_cast<std::uint64_t>(config.seed)})) {
    for (const auto& [name, parameter] : Learner::parameters(*work.model)) parameters_.push_back(parameter);
    work.model->train();
  }

  std::vector<ReadyGradient> ready() { return net_.gradients().ready(); }
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }

  // A step as training takes it, all workers at once.
  StepSamples::Step step() {
    world_.barrier();
    return own_step();
  }
  // Whatever the others do.
  StepSamples::Step own_step() {
    StepSamples::Step times;
    const double begin = now_seconds();
    const auto batch = next();
    const double start = now_seconds();
    auto loss = forward(batch);
    const double middle = now_seconds();
    loss.backward();
    const double end = now_seconds();
    times.backward = end - middle - net_.times().exposed;
    optimizer_->step(rate());
    const double stepped = now_seconds();
    net_.zero_grad();
    times.forward = middle - start;
    times.optimizer = stepped - end;
    times.other = start - begin + now_seconds() - stepped + net_.times().exposed;
    return times;
  }

  // Of one more batch, tensor by tensor, as far as about so many elements.
  struct Gradient {
    std::vector<float> all;
    std::vector<compress::Tensor> tensors;
  };
  Gradient gradient(std::size_t most) {
    forward(next()).backward();
    Gradient gradient;
    auto& [all, tensors] = gradient;
    for (const auto& parameter : parameters_) {
      if (!parameter.grad().defined() || parameter.numel() == 0 || all.size() >= most) continue;
      const auto flat = parameter.grad().detach().to(torch::kCPU, torch::kFloat32).contiguous();
      const std::size_t rows = flat.dim() > 1 ? static_cast<std::size_t>(flat.size(0)) : 1;
      const auto row = static_cast<std::size_t>(flat.numel()) / rows;
      const auto here = std::clamp<std::size_t>((most - all.size()) / row, 1, rows);  // whole ones
      tensors.push_back({"", here * row, here, static_cast<int>(tensors.size())});
      all.insert(all.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + here * row);
    }
    net_.zero_grad();
    return gradient;
  }

  // One more step, from the mean over equal pieces of a batch.
  void noise_step(NoiseEstimate& estimate, std::int64_t pieces) {
    const auto batch = next();
    const auto samples = batch.input.size(0) / pieces;
    if (samples == 0) return;
    auto quiet = net_.no_sync();
    const auto norms = norms_of(parameters_, static_cast<int>(pieces), [&](int piece) {
      auto loss =
          forward({batch.input.narrow(0, piece * samples, samples), batch.target.narrow(0, piece * samples, samples)});
      loss.backward();
      return loss.item<double>();
    });
    estimate.add(static_cast<double>(samples), norms.small_square, static_cast<double>(samples * pieces),
                 norms.large_square, norms.loss);
    optimizer_->step(rate());
    net_.zero_grad();
  }

 private:
  double rate() const { return config_.lr / 10; }  // as at the begin of a warm-up

  // A full batch, where there is one; loaded ahead by a thread, as in training.
  data::Batch next() {
    const bool any = work_.data.train->size() < config_.batch * world_.size();
    for (;;) {
      auto item = loader_.next();
      if (!item || item->here == 0 || (item->here < config_.batch && !any)) continue;
      return {item->batch.input.to(work_.device), item->batch.target.to(work_.device)};
    }
  }

  torch::Tensor forward(const data::Batch& batch) {
    nn::set_random(static_cast<std::uint64_t>(config_.seed + draws_++));
    torch::Tensor output;
    if (config_.autocast == "bf16") {
      Autocast autocast(work_.device.type());
      output = work_.model->forward(batch.input).to(torch::kFloat32);
    } else {
      output = work_.model->forward(batch.input);
    }
    auto loss = (*work_.objective.loss)(output, batch.target);
    (void)loss.item<double>();  // as training does, which also waits for the device
    score_of(work_.objective, output.detach(), batch.target);
    return loss;
  }

  const Config& config_;
  Workload& work_;
  Communicator& world_;
  Communicator alone_;
  DataParallel net_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<torch::Tensor> parameters_;
  data::Loader loader_;
  std::int64_t draws_ = 0;
};

// All run piece after piece at once.
std::vector<cluster::LayerProfile> profile_layers(const Config& config, Workload& work, Communicator& world, int runs) {
  const auto chain = work.model->chain();
  world.barrier();
  const auto timed = time_pieces(*work.model, chain, first_samples(work, config.batch), runs);
  // A few samples tell what does not shrink with the batch: starting kernels and autograd.
  const std::int64_t few = std::max<std::int64_t>(1, config.batch / 8);
  world.barrier();
  const auto small = time_pieces(*work.model, chain, first_samples(work, few), runs);
  const double share = static_cast<double>(few) / static_cast<double>(config.batch);
  const auto start = [&](double of_few, double of_all) {
    return share < 1 ? std::clamp((of_few - share * of_all) / (1 - share), 0.0, of_all) : 0;
  };
  std::vector<mesh::PieceCost> costs;
  for (const auto& piece : timed) costs.push_back(piece.cost);
  const auto tensor = tensor_costs(config, *work.model, chain, costs);
  std::vector<cluster::LayerProfile> layers;
  for (std::size_t k = 0; k < timed.size(); ++k) {
    layers.push_back({.name = costs[k].name,
                      .forward_s = cluster::quantiles_of(timed[k].forward),
                      .backward_s = cluster::quantiles_of(timed[k].backward),
                      .forward_start_s = start(small[k].cost.forward_s, costs[k].forward_s),
                      .backward_start_s = start(small[k].cost.backward_s, costs[k].backward_s),
                      .parameter_bytes = costs[k].parameter_bytes,
                      .activation_bytes = costs[k].kept_bytes,
                      .output_bytes = costs[k].output_bytes,
                      .splittable = tensor[k].splittable,
                      .fully_connected = tensor[k].fully_connected,
                      .tensor_bytes = tensor[k].communicated_bytes});
  }
  return layers;
}

// Steps beside all-reduces in the background, in turn with steps without, so that the machine's moods meet both.
struct Beside {
  double slowdown = 0;  // θ: how much longer a step takes, over how long they go on meanwhile
  double turn_s = 0;    // how much longer the least of them takes than where nobody computes
};

Beside measure_beside(Subject& subject, Communicator& world, std::size_t elements, double step_s, int rounds) {
  if (world.size() == 1) return {};
  auto memory = world.allocate<float>(elements);
  std::memset(memory.get(), 0, elements * sizeof(float));
  const View gradient(memory.get(), elements, DType::f32), least(memory.get(), 1, DType::f32);
  struct Both {
    double step_s = 0, together_s = 0;
  };
  // A step, and so many all-reduces that begin with it.
  const auto both = [&](const View& what, std::int64_t times, bool with_step) {
    world.barrier();
    const double start = now_seconds();
    std::vector<Work> all;
    for (std::int64_t k = 0; k < times; ++k) all.push_back(world.async().all_reduce(what));
    if (with_step) subject.own_step();
    const double stepped = now_seconds();
    double together = 0;
    for (auto& work : all) {
      work.wait();
      const auto [begin, end] = work.times();
      together += std::max(0.0, (with_step ? std::min(end, stepped) : end) - begin);
    }
    return Both{stepped - start, together};
  };
  // As many as take a tenth of a step: what one that is short takes from it is less than steps differ by.
  std::vector<double> takes;
  for (int k = 0; k < kWarm; ++k) takes.push_back(both(gradient, 1, true).together_s);
  std::int64_t times = std::clamp<std::int64_t>(std::llround(step_s / (10 * std::max(median(takes), 1e-6))), 1, 16);
  world.broadcast(View(std::span(&times, 1)));
  std::vector<double> quiet, busy, together;
  double longer = 0;
  for (int round = 0; round <= rounds; ++round) {  // the first warms up
    subject.own_step();                            // a core that waited for the last of them computes slowly at first
    const auto beside_least = both(least, 1, true), least_alone = both(least, 1, false);
    const auto beside = both(gradient, times, true);
    if (round == 0) continue;
    quiet.push_back(beside_least.step_s);
    busy.push_back(beside.step_s);
    together.push_back(beside.together_s);
    longer += (beside_least.together_s - least_alone.together_s) / rounds;
  }
  const double meanwhile = median(together);
  return {meanwhile > 0 ? std::clamp((median(busy) - median(quiet)) / meanwhile, 0.0, 1.0) : 0, std::max(0.0, longer)};
}

cluster::NoiseProfile measure_noise(const Config& config, Subject& subject, Communicator& world, int steps) {
  NoiseEstimate estimate;
  const std::int64_t pieces = std::min<std::int64_t>(4, config.batch);
  if (pieces < 2 || steps <= 0) return {};
  for (int k = 0; k < steps; ++k) subject.noise_step(estimate, pieces);
  world.all_reduce(View(std::span<double>(estimate.sums())));
  return estimate.result();
}

// Of what is measured beside steps: as many as go into half a second of the first rank's, a few where steps are long.
int rounds_of(double step_s, Communicator& world) {
  constexpr double kSeconds = 0.5;
  constexpr std::int64_t kLeast = 4, kMost = 60;
  auto rounds = std::clamp(static_cast<std::int64_t>(kSeconds / std::max(step_s, 1e-6)), kLeast, kMost);
  world.broadcast(View(std::span(&rounds, 1)));
  return static_cast<int>(rounds);
}

// Servers of the workers' hosts: to ask them for next to nothing, and within a host what they do with the bytes of half
// the model.
void profile_servers(Subject& subject, Communicator& world, int rounds, cluster::Profile& profile) {
  constexpr std::size_t kFew = 256;
  const auto request = [&](std::size_t elements) {
    return measure_server_request(
        world, elements, [&] { return subject.own_step().own(); }, rounds);
  };
  const bool near = world.transport() != "tcp";
  const auto least = request(kFew);
  (near ? profile.request_s : profile.link_request_s) = least.seconds;
  profile.resumed_s = least.resumed_s;
  const std::size_t elements = profile.gradient_elements() / 2;
  if (elements < 2 * kFew || profile.request_s == 0) return;
  // Each has a share: all gradients are read, weights read and written, and given to all.
  const double share = static_cast<double>((elements - kFew) * sizeof(float)) / world.size();
  const auto half = request(elements);
  profile.server_s_per_byte = std::max(0.0, half.seconds - least.seconds) / (share * (2 * world.size() + 2));
  profile.resumed_s = (least.resumed_s + half.resumed_s) / 2;
}

std::vector<cluster::CodecProfile> profile_codecs(Subject& subject, Interlude& interlude) {
  constexpr std::size_t kMost = 1 << 20;  // elements
  const auto gradient = subject.gradient(kMost);
  return cluster::measure_codecs(gradient.all, gradient.tensors, std::ref(interlude));
}

}  // namespace

cluster::Profile profile_model(const Config& config, Workload& work, Communicator& world,
                               const ProfilerOptions& options) {
  cluster::Profile profile;
  profile.model = config.model;
  profile.data = work.data.name;
  profile.device = config.device;
  profile.machine = machine_fingerprint();
  profile.batch = static_cast<int>(config.batch);
  profile.threads = torch::get_num_threads();
  profile.beside = world.impl().world->transport->ranks_on_host();
  profile.cores = usable_cores();
  profile.samples = static_cast<double>(work.data.train->size());

  options.progress("layers");
  profile.layers = profile_layers(config, work, world, std::clamp(options.steps / 2, 3, 10));
  Subject subject(config, work, world);
  options.progress("steps");
  StepSamples samples;
  for (int k = 0; k < kWarm + options.steps; ++k) {
    const auto step = subject.step();
    if (k >= kWarm) samples.add(step);
  }
  samples.fill(profile, subject.ready());
  const int rounds = rounds_of(profile.step_s.p50, world);
  options.progress("slowdown while communicating");
  const auto beside = measure_beside(subject, world, profile.gradient_elements(), profile.step_s.p50, rounds);
  profile.slowdown = beside.slowdown;
  profile.turn_s = beside.turn_s;
  const auto bytes = profile.gradient_bytes();
  Interlude interlude(world);
  profile.pack_s_per_byte = copy_s_per_byte(bytes, interlude);
  profile.pass_s_per_byte = pass_s_per_byte(bytes, interlude);
  options.progress("requests to servers");
  profile_servers(subject, world, rounds, profile);
  profile.copy_s_per_byte = download_s_per_byte(subject.parameters(), work.device, bytes);
  options.progress("noise of gradients");
  profile.noise = measure_noise(config, subject, world, options.noise_steps);
  if (options.codecs) {
    options.progress("codecs");
    profile.codecs = profile_codecs(subject, interlude);
  }
  world.barrier();
  return profile;
}

}  // namespace trireme::train
