#include "trireme/train/body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/pipeline/timing.h"
#include "trireme/train/gather_text.h"
#include "trireme/train/recompute.h"
#include "trireme/train/split.h"

namespace trireme::train {
namespace {

constexpr std::string_view kPrefixes[] = {"model.", "optimizer."};

// A few samples as a worker would be given them.
torch::Tensor example_of(const Workload& work, std::int64_t samples) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(samples, work.data.train->size())));
  std::iota(indices.begin(), indices.end(), 0);
  return work.data.train->get(indices).input.to(work.device);
}

}  // namespace

Body::Body(const Config& config, Workload& work, Mesh& mesh)
    : config_(config), work_(work), mesh_(mesh), chain_(work.model->chain()) {
  parameters_ = train::parameter_count(*work.model);
  PipelineOptions options;
  options.schedule = config.pipeline;
  options.micro_batches = static_cast<int>(config.micro_batches);
  options.chunks = static_cast<int>(config.chunks);
  options.vertical_sync = config.vertical_sync;
  options.recompute = recompute_of(config.recompute);
  const auto samples = (config.batch * config.accumulate + config.micro_batches - 1) / config.micro_batches;
  auto example = example_of(work, samples);
  auto split = split_of(config, *work.model, chain_, mesh, example);
  options.starts = split.starts;
  split_ = split.why;
  if (config.shard != "none") options.segment = 1;
  pipeline_ = std::make_unique<Pipeline>(*work.model, chain_, mesh, example, options);
  if (config.shard != "none") shard();
}

void Body::shard() {
  if (pipeline_->ties()) {
    throw ConfigError(fmt::format("--shard {}: stages of {} share a weight, whose shards would differ; use pipe=1 here",
                                  config_.shard, config_.model));
  }
  auto& stage = *pipeline_->stages().front();
  sharded_ = std::make_unique<parallel::Sharded>(
      parallel::units_of(stage), mesh_.data(),
      parallel::ShardOptions{.what = parallel::parse_shard_kind(config_.shard), .check_finite = true});
  stage.set_watch(sharded_.get());
}

torch::Tensor Body::loss(const torch::Tensor& output, const torch::Tensor& target) { return loss_of(output, target); }
Score Body::score(const torch::Tensor& output, const torch::Tensor& target) { return score_of(output, target); }

Evaluation Body::evaluate(const data::Dataset& set) {
  constexpr std::int64_t kBatch = 256;
  const std::int64_t replicas = mesh_.shape().data, replica = mesh_.place().data;
  const std::int64_t begin = set.size() * replica / replicas, end = set.size() * (replica + 1) / replicas;
  torch::NoGradGuard no_grad;
  work_.model->eval();
  std::vector<double> sums(4);  // loss, correct, of, samples
  std::vector<std::int64_t> indices;
  for (std::int64_t at = begin; at < end; at += kBatch) {
    indices.resize(std::min(kBatch, end - at));
    std::iota(indices.begin(), indices.end(), at);
    auto batch = set.get(indices);
    auto output = pipeline_->evaluate(batch.input.to(work_.device));
    if (!output.defined()) continue;
    auto target = batch.target.to(work_.device);
    auto [correct, of] = score(output, target);
    const double mean = loss(output, target).item<double>();
    if (!tells()) continue;
    sums[0] += mean * static_cast<double>(indices.size());
    sums[1] += correct;
    sums[2] += of;
    sums[3] += static_cast<double>(indices.size());
  }
  work_.model->train();
  mesh_.world().all_reduce(sums);
  return {sums[3] > 0 ? sums[0] / sums[3] : 0, sums[2] > 0 ? sums[1] / sums[2] : 0, static_cast<std::int64_t>(sums[3])};
}

double Body::square_of_gradients() {
  std::vector<double> sum(1);
  const auto& held = pipeline_->holdings();
  if (sharded_) {
    // Every worker of the data axis has squares of its own.
    sum[0] = mesh_.place().tensor == 0 ? sharded_->local_squares() : 0;
    mesh_.world().all_reduce(sum);
    return sum[0];
  }
  for (const auto& [name, tensor] : held.parameters) {
    if (!tensor.grad().defined() || !held.first_here.contains(name) || mesh_.place().tensor != 0) continue;
    sum[0] += tensor.grad().square().sum(torch::kFloat64).item<double>();
  }
  mesh_.replica().all_reduce(sum);
  return sum[0];
}

std::string Body::holder_of(const std::string& name) const {
  const auto& held = pipeline_->holdings();
  std::string best;
  for (const auto* list : {&held.parameters, &held.buffers}) {
    for (const auto& [known, tensor] : *list) {
      const bool begins = name == known || (name.starts_with(known) && name[known.size()] == '.');
      if (begins && known.size() > best.size()) best = known;
    }
  }
  return best;
}

// The first replica's workers send what they are the first to hold to the first of them.
NamedTensors Body::whole(const NamedTensors& local) {
  if (mesh_.place().data != 0) return {};
  auto& replica = mesh_.replica();
  const auto& held = pipeline_->holdings();
  NamedTensors sent;
  auto outline = nlohmann::json::array();
  for (const auto& [name, tensor] : local) {
    std::string bare = name;
    for (auto prefix : kPrefixes) {
      if (name.starts_with(prefix)) bare = name.substr(prefix.size());
    }
    const auto holder = holder_of(bare);
    const bool buffer = std::ranges::any_of(held.buffers, [&](const auto& entry) { return entry.first == holder; });
    if (!buffer && !held.first_here.contains(holder)) continue;
    sent.emplace_back(name, tensor.detach().to(torch::kCPU).contiguous());
    outline.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  auto texts = gather_text(replica, outline.dump());
  if (replica.rank() != 0) {
    for (const auto& [name, tensor] : sent) replica.send(View(tensor.data_ptr(), tensor.nbytes(), DType::u8), 0);
    return {};
  }
  std::map<std::string, torch::Tensor> found;
  for (auto& [name, tensor] : sent) found[name] = tensor;
  for (int rank = 1; rank < replica.size(); ++rank) {
    for (const auto& row : nlohmann::json::parse(texts[static_cast<std::size_t>(rank)])) {
      auto tensor =
          torch::empty(row[2].get<std::vector<std::int64_t>>(), static_cast<torch::ScalarType>(row[1].get<int>()));
      replica.recv(View(tensor.data_ptr(), tensor.nbytes(), DType::u8), rank);
      found[row[0].get<std::string>()] = tensor;
    }
  }
  return {found.begin(), found.end()};
}

LoadedCheckpoint Body::own_part(const LoadedCheckpoint& checkpoint) const {
  LoadedCheckpoint mine{checkpoint.step, checkpoint.metric, {}, checkpoint.metadata};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    for (auto prefix : kPrefixes) {
      if (name.starts_with(prefix) && !holder_of(name.substr(prefix.size())).empty()) {
        mine.tensors.emplace_back(name, tensor);
      }
    }
  }
  return mine;
}

std::uint64_t Body::bytes_sent() { return pipeline_->bytes_sent() + mesh_.tensor().bytes_sent(); }

std::string Body::describe() const {
  auto text = plan::to_text(mesh_.shape());
  if (mesh_.shape().pipe > 1) {
    text += fmt::format("; {}, {} micro-batches; {}", config_.pipeline, config_.micro_batches, split_);
  }
  if (config_.shard != "none") text += fmt::format("; shards of {}", config_.shard);
  if (config_.recompute != "none") text += fmt::format("; recompute {}", config_.recompute);
  return text;
}

Body::Report Body::report(double seconds) {
  Report report;
  const int stages = mesh_.shape().pipe;
  if (stages < 2) return report;
  const auto& usage = pipeline_->usage();
  const int chunks = pipeline_->parts() / stages;
  const double steps = static_cast<double>(std::max<std::int64_t>(usage.steps, 1));
  const double per = 1 / (steps * static_cast<double>(config_.micro_batches));
  // A sum in which every part, and behind them every stage, has a place of its own.
  constexpr std::size_t kOfPart = 3, kOfStage = 3;
  const std::size_t parts = static_cast<std::size_t>(pipeline_->parts());
  std::vector<double> all(kOfPart * parts + kOfStage * static_cast<std::size_t>(stages));
  if (mesh_.place().tensor == 0) {
    const int stage = mesh_.place().pipe;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      double* mine = all.data() + kOfPart * static_cast<std::size_t>(chunk * stages + stage);
      mine[0] = usage.forward_s[chunk] * per;
      mine[1] = usage.backward_s[chunk] * per;
      mine[2] = usage.weights_s[chunk] * per;
    }
    double* mine = all.data() + kOfPart * parts + kOfStage * static_cast<std::size_t>(stage);
    mine[0] = usage.busy_s() / std::max(seconds, 1e-9);
    mine[1] = std::max(0.0, seconds - usage.busy_s()) / steps;
    mine[2] = usage.latency_s / steps;
  }
  mesh_.replica().all_reduce(all);
  if (mesh_.world().rank() != 0) return report;

  pipeline::Costs costs;
  for (std::size_t part = 0; part < parts; ++part) {
    costs.forward.push_back(all[kOfPart * part]);
    costs.backward.push_back(all[kOfPart * part + 1]);
    costs.weights.push_back(all[kOfPart * part + 2]);
  }
  const auto schedule = pipeline::make(config_.pipeline, stages, static_cast<int>(config_.micro_batches),
                                       static_cast<int>(config_.chunks));
  const auto timing = pipeline::time_of(schedule, costs);
  double busy = 0;
  std::vector<double> idle_ms, latency_ms;
  for (int stage = 0; stage < stages; ++stage) {
    const double* its = all.data() + kOfPart * parts + kOfStage * static_cast<std::size_t>(stage);
    busy += its[0] / stages;
    idle_ms.push_back(1e3 * its[1]);
    latency_ms.push_back(1e3 * its[2]);
  }
  report.numbers = {
      {"bubble", 1 - busy},          {"bubble_formula", timing.bubble},       {"idle_ms", idle_ms},
      {"latency_ms", latency_ms[0]}, {"forward_ms", nlohmann::json::array()}, {"backward_ms", nlohmann::json::array()}};
  for (std::size_t part = 0; part < parts; ++part) {
    report.numbers["forward_ms"].push_back(1e3 * costs.forward[part]);
    report.numbers["backward_ms"].push_back(1e3 * (costs.backward[part] + costs.weights[part]));
  }
  report.lines.push_back(fmt::format(
      "pipeline: bubble {:.1f} % measured, {:.1f} % by the schedule with these stages' times; idle a step {:.1f} ms; "
      "a micro-batch is back after {:.1f} ms",
      100 * (1 - busy), 100 * timing.bubble, fmt::join(idle_ms, " / "), latency_ms[0]));
  return report;
}

}  // namespace trireme::train
