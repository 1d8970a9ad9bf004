#include "trireme/parallel/pipeline/pipeline.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "trireme/base/error.h"
#include "trireme/mesh/schedule.h"
#include "trireme/mesh/schedules/lists.h"
#include "trireme/parallel/pipeline/pipeline_impl.h"

namespace trireme {
namespace {

using parallel::Forms;
using parallel::Starts;
using pipelines::Action;

Starts starts_of(const torch::nn::Module& model, const nn::Chain& chain, const PipelineOptions& options,
                 std::size_t parts) {
  if (chain.size() < parts) {
    throw ConfigError(fmt::format("pipeline: {} parts of a model of {} pieces; at most {} are possible", parts,
                                  chain.size(), chain.size()));
  }
  if (options.starts.empty()) return parallel::equal_weights(model, chain, parts);
  if (options.starts.size() != parts || options.starts.front() != 0 || options.starts.back() >= chain.size() ||
      std::ranges::adjacent_find(options.starts, std::greater_equal{}) != options.starts.end()) {
    throw ConfigError(fmt::format("pipeline: {} parts must begin at {} pieces in order, the first at 0", parts, parts));
  }
  return options.starts;
}

// What crosses each cut, learned from one sample.
std::vector<Forms> forms_after(torch::nn::Module& model, const nn::Chain& chain, const Starts& starts,
                               const torch::Tensor& example) {
  torch::NoGradGuard no_grad;
  const bool training = model.is_training();
  model.eval();
  std::vector<Forms> forms;
  nn::Values values{example.narrow(0, 0, 1)};
  for (std::size_t part = 0; part + 1 < starts.size(); ++part) {
    values = nn::run(chain, values, starts[part], starts[part + 1]);
    forms.push_back(parallel::forms_of(values));
  }
  model.train(training);
  return forms;
}

}  // namespace

double PipelineUsage::busy_s() const {
  double sum = 0;
  for (const auto* list : {&forward_s, &backward_s, &weights_s}) sum = std::accumulate(list->begin(), list->end(), sum);
  return sum;
}

Pipeline::Impl::Impl(torch::nn::Module& whole, nn::Chain pieces, Mesh& grid, const PipelineOptions& wanted)
    : model(whole),
      mesh(grid),
      options(wanted),
      kind(pipelines::find_kind(wanted.schedule)),
      chain(std::move(pieces)),
      stages(grid.shape().pipe),
      stage(grid.place().pipe),
      chunks(kind.in_chunks ? wanted.chunks : 1),
      starts(starts_of(whole, chain, wanted, static_cast<std::size_t>(stages) * chunks)),
      held(parallel::stage_parameters_of(whole, chain, starts, stages, stage)),
      part(nn::module_of(held.parameters, held.buffers)),
      tied(whole, chain, starts, grid.pipe()) {
  pipelines::make(options.schedule, stages, options.micro_batches, options.chunks);  // refuses what cannot be
  std::set<const void*> seen;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto at = static_cast<std::size_t>(part_of(chunk));
    parallel::StageOptions how;
    how.segment = options.recompute > 0 ? options.recompute : kind.splits_backward ? 1 : options.segment;
    how.recompute = options.recompute > 0;
    how.input_gradients = at > 0;
    parts.emplace_back(model, chain, starts[at], parallel::end_of_part(starts, at, chain.size()), how);
    apart &= parts.back().parameters_apart();
    for (std::size_t k = 0; k < parts.back().segments(); ++k) {
      for (const auto& [name, tensor] : parts.back().parameters(k)) {
        apart &= seen.insert(tensor.unsafeGetTensorImpl()).second;
      }
    }
  }
  if (!kind.synchronous) {
    if (!tied.groups().empty()) {
      throw ConfigError(
          fmt::format("--pipeline {}: stages share a weight, whose copies would drift apart; the "
                      "synchronous schedules keep them equal",
                      kind.name));
    }
    versions.emplace(held.parameters);
    if (!options.vertical_sync) versions->forget_before(std::numeric_limits<std::int64_t>::max());
  }
  usage.forward_s.resize(chunks);
  usage.backward_s.resize(chunks);
  usage.weights_s.resize(chunks);
}

void Pipeline::Impl::learn(const torch::Tensor& example) {
  if (channel) return;
  channel.emplace(mesh.pipe(), forms_after(model, chain, starts, example), example.device());
  if (options.release) parallel::release_others(model, held);
}

Pipeline::Pipeline(torch::nn::Module& model, nn::Chain chain, Mesh& mesh, const PipelineOptions& options,
                   const torch::Tensor& example)
    : impl_(std::make_unique<Impl>(model, std::move(chain), mesh, options)) {
  if (example.defined()) impl_->learn(example);
}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

void Pipeline::step(const Batch& batch) {
  auto& my = *impl_;
  my.check(batch);
  my.learn(batch.input);
  const auto samples = batch.input.size(0);
  my.first = my.kind.synchronous ? 0 : my.first + my.count;
  my.count = static_cast<int>(std::min<std::int64_t>(
      std::max<std::int64_t>(samples, 1), batch.micro_batches > 0 ? batch.micro_batches : my.options.micro_batches));
  for (int k = 0; k < my.count; ++k) {
    my.rows[my.first + k] = begin_of(samples, my.count, k + 1) - begin_of(samples, my.count, k);
  }
  ++my.usage.steps;
  const double waited = my.channel->waited();
  if (!my.kind.synchronous) {
    my.run(pipelines::step_of_stream(my.stages, my.stage, my.first, my.count), batch);
  } else {
    const auto schedule = pipelines::make(my.options.schedule, my.stages, my.count, my.options.chunks);
    const auto& actions = schedule.actions[static_cast<std::size_t>(my.stage)];
    if (batch.replicas) {
      auto exchange = batch.replicas->in_parts();
      my.run(actions, batch);
      exchange.finish();
    } else {
      my.run(actions, batch);
    }
    if (batch.sums_tied) my.tied.sum_gradients();
    my.rows.clear();
  }
  my.usage.waited_s += my.channel->waited() - waited;
}

void Pipeline::Impl::check(const Batch& batch) const {
  if (!kind.synchronous && !batch.update) {
    throw ConfigError(fmt::format(
        "pipeline {}: weights change within a step; give the batch an `update` that lets the optimizer step",
        kind.name));
  }
  if (stage == stages - 1 && !batch.loss) {
    throw ConfigError(fmt::format("pipeline {}: the batch has no `loss`, which the last stage computes", kind.name));
  }
}

void Pipeline::skip(const Batch& batch) {
  if (batch.replicas) batch.replicas->contribute_nothing();
  impl_->tied.sum_gradients();
}

void Pipeline::drain(const Batch& batch) {
  auto& my = *impl_;
  if (my.kind.synchronous) return;
  my.check(batch);
  my.run(pipelines::drain_of_stream(my.stages, my.stage, my.first + my.count), batch);
  my.first = my.count = 0;
  my.stream_from = my.versions->newest();
}

torch::Tensor Pipeline::evaluate(const torch::Tensor& input) {
  auto& my = *impl_;
  my.learn(input);
  const auto rows = input.size(0);
  nn::Values values;
  for (int chunk = 0; chunk < my.chunks; ++chunk) {
    const int here = my.part_of(chunk);
    if (here == 0) {
      values = {input};
    } else if (my.stages > 1) {
      const Action receive{Action::Kind::receive_activation, 0, chunk};
      my.channel->expect(receive, rows);
      values = my.channel->take(receive);
    }
    values = my.parts[chunk].evaluate(std::move(values));
    if (!my.last_part(here) && my.stages > 1) my.channel->send({Action::Kind::send_activation, 0, chunk}, values, rows);
  }
  my.channel->flush();
  return last() ? values.at(0) : torch::Tensor();
}

torch::nn::Module& Pipeline::part() { return *impl_->part; }
const parallel::StageParameters& Pipeline::stage_parameters() const { return impl_->held; }

std::vector<parallel::Stage*> Pipeline::stages() {
  std::vector<parallel::Stage*> found;
  for (auto& one : impl_->parts) found.push_back(&one);
  return found;
}

bool Pipeline::first() const { return impl_->stage == 0; }
bool Pipeline::last() const { return impl_->stage == impl_->stages - 1; }
bool Pipeline::synchronous() const { return impl_->kind.synchronous; }
parallel::TiedWeights& Pipeline::tied() { return impl_->tied; }
int Pipeline::parts() const { return impl_->stages * impl_->chunks; }
const PipelineOptions& Pipeline::options() const { return impl_->options; }
std::uint64_t Pipeline::bytes_sent() const {
  return (impl_->channel ? impl_->channel->bytes_sent() : 0) + impl_->mesh.pipe().bytes_sent();
}
const PipelineUsage& Pipeline::usage() const { return impl_->usage; }

void Pipeline::clear_usage() {
  auto& usage = impl_->usage;
  const auto chunks = usage.forward_s.size();
  usage = {};
  for (auto* list : {&usage.forward_s, &usage.backward_s, &usage.weights_s}) list->resize(chunks);
}

}  // namespace trireme
