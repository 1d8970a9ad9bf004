#include "trireme/train/learner/mesh/mesh_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <set>

#include "trireme/base/error.h"
#include "trireme/parallel/pipeline/stage_parameters.h"
#include "trireme/parallel/tensor/tensor_rules.h"
#include "trireme/train/group/gather_text.h"
#include "trireme/train/learner/recompute.h"
#include "trireme/train/learner/split.h"

namespace trireme::train {
namespace {

constexpr std::string_view kPrefixes[] = {"model.", "optimizer."};

std::string bare_name(const std::string& name) {
  for (auto prefix : kPrefixes) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

bool begins(const std::string& name, const std::string& with) {
  return name == with || (name.starts_with(with) && name[with.size()] == '.');
}

// AlexNet's: samples are gathered where convolutions end, and the layers behind are cut in turn.
std::string hybrid_rules(const torch::nn::Module& model) {
  std::string rules;
  bool column = true, convolutions = false;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    convolutions |= item.value()->as<torch::nn::Conv2dImpl>() != nullptr;
    if (!item.value()->as<torch::nn::LinearImpl>()) continue;
    rules += fmt::format("{}{}={}", rules.empty() ? "" : ",", item.key(),
                         rules.empty() ? "batch-column"
                         : column      ? "column"
                                       : "row");
    column = !column;
  }
  if (!convolutions || rules.empty()) {
    throw ConfigError(
        "--hybrid alexnet: for a model of convolutions with fully-connected layers behind them, as alexnet-small");
  }
  return rules;
}

}  // namespace

MeshModel::MeshModel(const Config& config, Workload& work, Mesh& mesh)
    : config_(config), work_(work), mesh_(mesh), chain_(work.model->chain()) {
  parameters_ = train::parameter_count(*work.model);
  PipelineOptions options;
  options.schedule = config.pipeline;
  options.micro_batches = static_cast<int>(micro_batches_of(config));
  options.chunks = static_cast<int>(config.chunks);
  options.vertical_sync = config.vertical_sync;
  options.recompute = recompute_of(config.recompute);
  const auto samples = (config.batch * config.accumulate + options.micro_batches - 1) / options.micro_batches;
  auto example = first_samples(work, samples);
  if (gathers_batch()) options.micro_batches = 1;  // what is gathered is gathered once
  if (mesh.shape().tensor > 1 || gathers_batch()) split_layers(example);
  auto split = split_of(config, *work.model, chain_, mesh, example);
  options.starts = split.starts;
  split_ = split.why;
  if (config.shard != "none") options.segment = 1;
  const auto memory = memory_of_pieces(*work.model, chain_, example);
  pipeline_ = std::make_unique<Pipeline>(*work.model, chain_, mesh, options, example);
  if (config.shard != "none") shard();
  for (auto* stage : pipeline_->stages()) {
    stage->set_probe([this] {
      const auto live = static_cast<double>(memory_.of(parallel::MemoryClass::rest).live);
      activations_ = std::max(activations_, live - rest_before_);
    });
    pieces_.insert(pieces_.end(), memory.begin() + static_cast<std::ptrdiff_t>(stage->first()),
                   memory.begin() + static_cast<std::ptrdiff_t>(stage->last()));
  }
}

void MeshModel::shard() {
  parallel::ShardOptions how{.what = parallel::parse_shard_kind(config_.shard), .check_finite = true};
  for (const auto& group : pipeline_->tied().groups()) how.apart.insert(group.names.begin(), group.names.end());
  const auto stages = pipeline_->stages();
  sharded_ = std::make_unique<parallel::Sharded>(parallel::units_of(stages), mesh_.data(), how);
  sharded_->watch(stages);
}

void MeshModel::finish_shards() {
  sharded_->finish();
  for (auto& group : pipeline_->tied().groups()) sharded_->sum_tied(group.comm, group.names);
}

void MeshModel::split_layers(const torch::Tensor& example) {
  auto& model = *work_.model;
  const bool hybrid = gathers_batch();
  const auto rules = hybrid                          ? hybrid_rules(model)
                     : config_.tensor_rule == "auto" ? parallel::default_rules(config_.model, model)
                                                     : config_.tensor_rule;
  tensor_.emplace(
      model, [&model = *work_.model](torch::Tensor input) { return model.forward(input); },
      hybrid ? mesh_.data() : mesh_.tensor(), rules, example);
}

torch::Tensor MeshModel::loss(const torch::Tensor& output, const torch::Tensor& target) {
  const auto& loss = *work_.objective.loss;
  return tensor_ ? loss.in_parts(*tensor_, output, target) : loss(output, target);
}

Score MeshModel::score(const torch::Tensor& output, const torch::Tensor& target) {
  if (!tensor_) return score_of(work_.objective, output, target);
  torch::NoGradGuard no_grad;
  std::array<double, 2> sums{};
  if (const auto* metric = work_.objective.while_training()) metric->add_in_parts(*tensor_, output, target, sums);
  return {sums[0], sums[1]};
}

NamedTensors MeshModel::exchanged() {
  NamedTensors found;
  const std::set<std::string> partial(tensor_->partial().begin(), tensor_->partial().end());
  for (const auto& [name, tensor] : pipeline_->stage_parameters().parameters) {
    if (partial.contains(name)) found.emplace_back(name, tensor);
  }
  return found;
}

Evaluation MeshModel::evaluate(const data::Dataset& set) {
  const std::int64_t replicas = mesh_.shape().data, replica = mesh_.place().data;
  // Where workers gather each other's samples all of them judge all, each time together.
  const bool together = gathers_batch();
  const std::int64_t first = together ? 0 : set.size() * replica / replicas,
                     last = together ? set.size() : set.size() * (replica + 1) / replicas;
  work_.model->eval();
  const auto& objective = work_.objective;
  const auto one_batch = [&](const data::Batch& batch, std::span<double> sums) -> std::optional<double> {
    auto output = pipeline_->evaluate(batch.input.to(work_.device));
    if (!output.defined()) return std::nullopt;
    auto target = batch.target.to(work_.device);
    // Collective, as the loss: before anyone falls silent.
    std::vector<double> unheard(sums.size());
    const auto into = tells() ? sums : std::span(unheard);
    tensor_ ? objective.add_in_parts(*tensor_, output, target, into) : objective.add(output, target, into);
    const double mean = loss(output, target).item<double>();
    return tells() ? std::optional(mean) : std::nullopt;
  };
  auto tally = judge(objective, set, first, last, one_batch);
  work_.model->train();
  mesh_.world().all_reduce(std::span<double>(tally.sums));
  if (together) {
    for (double& sum : tally.of_metrics()) sum /= static_cast<double>(replicas);  // each saw everybody's
  }
  return tally.evaluation(objective);
}

std::function<void(const std::string&, std::span<double>)> MeshModel::over_parts() {
  if (!tensor_) return nullptr;
  return [this, &parts = gathers_batch() ? mesh_.data() : mesh_.tensor()](const std::string& parameter,
                                                                          std::span<double> squares) {
    if (tensor_->cuts().contains(parameter)) parts.all_reduce(squares);
  };
}

double MeshModel::square_of_gradients() {
  std::vector<double> sum(1);
  const auto& held = pipeline_->stage_parameters();
  std::set<std::string> counted;  // once: the first stage that has it, and, where it is whole, the first of its parts
  for (const auto& name : held.first_here) {
    if (mesh_.place().tensor == 0 || (tensor_ && tensor_->cuts().contains(name))) counted.insert(name);
  }
  if (sharded_) {
    sum[0] = sharded_->local_squares(counted);
    mesh_.world().all_reduce(sum);  // every worker of the data axis has squares of its own
    return sum[0];
  }
  for (const auto& [name, tensor] : held.parameters) {
    if (!tensor.grad().defined() || !counted.contains(name)) continue;
    sum[0] += tensor.grad().square().sum(torch::kFloat64).item<double>();
  }
  mesh_.replica().all_reduce(sum);
  return sum[0];
}

std::string MeshModel::cut_holder(const std::string& name) const {
  for (const auto& [known, cut] : tensor_->cuts()) {
    if (begins(name, known)) return known;
  }
  return {};
}

std::string MeshModel::holder_of(const std::string& name) const {
  const auto& held = pipeline_->stage_parameters();
  std::string best;
  for (const auto* list : {&held.parameters, &held.buffers}) {
    for (const auto& [known, tensor] : *list) {
      if (begins(name, known) && known.size() > best.size()) best = known;
    }
  }
  return best;
}

const parallel::Cut* MeshModel::cut_of(const std::string& holder, const torch::Tensor& tensor) const {
  if (!tensor_ || tensor.dim() == 0) return nullptr;  // a count of steps is whole
  auto found = tensor_->cuts().find(holder);
  return found == tensor_->cuts().end() ? nullptr : &found->second;
}

// The first replica's workers send what they are the first to hold to the first of them; in the hybrid, where each
// replica has a part of the last layers, all do.
NamedTensors MeshModel::whole(const NamedTensors& local) {
  const bool hybrid = gathers_batch();
  if (mesh_.place().data != 0 && !hybrid) return {};
  auto& replica = hybrid ? mesh_.data() : mesh_.replica();
  const auto& held = pipeline_->stage_parameters();
  NamedTensors sent;
  auto outline = nlohmann::json::array();
  for (const auto& [name, tensor] : local) {
    const auto holder = holder_of(bare_name(name));
    const bool buffer = std::ranges::any_of(held.buffers, [&](const auto& entry) { return entry.first == holder; });
    if (!buffer && !held.first_here.contains(holder)) continue;
    const bool first = hybrid ? mesh_.place().data == 0 : mesh_.place().tensor == 0;
    if (!first && !cut_of(holder, tensor)) continue;
    sent.emplace_back(name, tensor.detach().to(torch::kCPU).contiguous());
    outline.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  auto texts = gather_text(replica, outline.dump());
  if (replica.rank() != 0) {
    for (const auto& [name, tensor] : sent) replica.send(View(tensor.data_ptr(), tensor.nbytes(), DType::u8), 0);
    return {};
  }
  std::map<std::string, std::vector<torch::Tensor>> found;  // parts in the order of ranks
  for (auto& [name, tensor] : sent) found[name].push_back(tensor);
  for (int rank = 1; rank < replica.size(); ++rank) {
    for (const auto& row : nlohmann::json::parse(texts[static_cast<std::size_t>(rank)])) {
      auto tensor =
          torch::empty(row[2].get<std::vector<std::int64_t>>(), static_cast<torch::ScalarType>(row[1].get<int>()));
      replica.recv(View(tensor.data_ptr(), tensor.nbytes(), DType::u8), rank);
      found[row[0].get<std::string>()].push_back(tensor);
    }
  }
  NamedTensors whole;
  for (auto& [name, parts] : found) {
    const auto* cut = cut_of(tensor_ ? cut_holder(bare_name(name)) : "", parts[0]);
    whole.emplace_back(name, cut ? parallel::assemble(parts, *cut) : parts[0]);
  }
  return whole;
}

LoadedCheckpoint MeshModel::own_part(const LoadedCheckpoint& checkpoint) const {
  LoadedCheckpoint mine{checkpoint.step, checkpoint.metric, {}, checkpoint.metadata};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    for (auto prefix : kPrefixes) {
      if (!name.starts_with(prefix)) continue;
      const auto holder = holder_of(name.substr(prefix.size()));
      if (holder.empty()) continue;
      const auto* cut = cut_of(holder, tensor);
      const int part = gathers_batch() ? mesh_.place().data : mesh_.place().tensor;
      mine.tensors.emplace_back(name, cut ? parallel::local_of(tensor, *cut, part) : tensor);
    }
  }
  return mine;
}

std::uint64_t MeshModel::bytes_sent() { return pipeline_->bytes_sent() + mesh_.tensor().bytes_sent(); }

std::string MeshModel::describe() const {
  auto text = mesh::to_text(mesh_.shape());
  if (mesh_.shape().pipe > 1) {
    text += fmt::format("; {}, {} micro-batches; {}", config_.pipeline, micro_batches_of(config_), split_);
  }
  if (gathers_batch()) text += "; convolutions by samples, the layers behind them in parts";
  if (config_.shard != "none") text += fmt::format("; shards of {}", config_.shard);
  if (config_.recompute != "none") text += fmt::format("; recompute {}", config_.recompute);
  return text;
}

}  // namespace trireme::train
