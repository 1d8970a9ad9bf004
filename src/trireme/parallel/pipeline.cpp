#include "trireme/parallel/pipeline.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/parallel/mail.h"
#include "trireme/parallel/versions.h"
#include "trireme/pipeline/lists.h"
#include "trireme/pipeline/schedule.h"

namespace trireme {
namespace {

using parallel::Forms;
using parallel::Starts;
using pipelines::Action;

constexpr std::size_t kExpectAhead = 2;  // messages that are received while others are worked on

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

// Of n samples in m parts, those of part k.
std::int64_t begin_of(std::int64_t n, std::int64_t m, std::int64_t k) { return n * k / m; }

}  // namespace

double PipelineUsage::busy_s() const {
  double sum = 0;
  for (const auto* list : {&forward_s, &backward_s, &weights_s}) sum = std::accumulate(list->begin(), list->end(), sum);
  return sum;
}

struct Pipeline::Impl {
  Impl(torch::nn::Module& whole, nn::Chain pieces, Mesh& grid, const PipelineOptions& wanted);

  // Before the first batch, or the like of it.
  void learn(const torch::Tensor& example);

  using Key = std::pair<int, int>;  // micro-batch, chunk

  void run(std::span<const Action> actions, const Batch& batch);
  void act(const Action& action, const Batch& batch, bool final);
  void forward(const Action& action, const Batch& batch);
  void backward(const Action& action, bool final);
  void update(const Action& action, const Batch& batch);
  void begin_loss(int micro_batch, const nn::Values& outputs, const Batch& batch);
  int part_of(int chunk) const { return chunk * stages + stage; }
  bool last_part(int number) const { return number + 1 == stages * chunks; }
  std::int64_t version_for(int micro_batch) const;
  void forget(int micro_batch);

  torch::nn::Module& model;
  Mesh& mesh;
  const PipelineOptions options;
  const pipelines::Kind& kind;
  const nn::Chain chain;
  const int stages, stage, chunks;
  const Starts starts;
  parallel::Holdings held;
  std::shared_ptr<torch::nn::Module> part;
  parallel::TiedWeights tied;
  std::optional<parallel::Mail> mail;
  std::vector<parallel::Stage> parts;
  bool apart = true;  // each parameter's gradient comes in one backward

  // Of micro-batches under way; `first` is the number of the batch's first one.
  int first = 0, count = 0;
  std::map<int, std::int64_t> rows;
  std::map<Key, nn::Values> activations, gradients;  // in, or ready to be sent
  std::optional<parallel::WeightVersions> versions;
  std::map<int, std::int64_t> version_of;
  std::int64_t stream_from = 0;  // the version with which the stream at hand began
  PipelineUsage usage;
  double latency_from = 0;
};

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
      held(parallel::holdings_of(whole, chain, starts, stages, stage)),
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
  if (mail) return;
  mail.emplace(mesh.pipe(), forms_after(model, chain, starts, example), example.device());
  if (options.release) parallel::release_others(model, held);
}

// The actions in their order, with receives begun some messages ahead.
void Pipeline::Impl::run(std::span<const Action> actions, const Batch& batch) {
  std::map<int, std::size_t> last_gradient;  // by chunk: where its weights' gradients are complete
  const auto completes = kind.splits_backward ? Action::Kind::weight_gradient : Action::Kind::backward;
  for (std::size_t k = 0; k < actions.size(); ++k) {
    if (actions[k].kind == completes) last_gradient[actions[k].chunk] = k;
  }
  std::size_t ahead = 0, expected = 0;
  for (std::size_t k = 0; k < actions.size(); ++k) {
    for (; ahead < actions.size() && expected < kExpectAhead; ++ahead) {
      if (!pipelines::receives(actions[ahead])) continue;
      mail->expect(actions[ahead], rows.at(actions[ahead].micro_batch));
      ++expected;
    }
    if (pipelines::receives(actions[k])) --expected;
    const bool final = actions[k].kind == completes && last_gradient.at(actions[k].chunk) == k;
    act(actions[k], batch, final);
  }
  mail->flush();
}

void Pipeline::Impl::act(const Action& action, const Batch& batch, bool final) {
  const Key key{action.micro_batch, action.chunk};
  switch (action.kind) {
    case Action::Kind::receive_activation:
      activations[key] = mail->take(action);
      break;
    case Action::Kind::receive_gradient:
      gradients[key] = mail->take(action);
      break;
    case Action::Kind::send_activation:
      mail->send(action, activations.extract(key).mapped(), rows.at(action.micro_batch));
      break;
    case Action::Kind::send_gradient:
      mail->send(action, gradients.extract(key).mapped(), rows.at(action.micro_batch));
      break;
    case Action::Kind::forward:
      forward(action, batch);
      break;
    case Action::Kind::backward:
    case Action::Kind::weight_gradient:
      // Gradients leave with the last backward of their part, if they all come in one.
      if (batch.replicas && !(final && apart && kind.synchronous)) {
        auto quiet = batch.replicas->no_sync();
        backward(action, final);
      } else {
        backward(action, final);
      }
      break;
    case Action::Kind::update:
      update(action, batch);
      break;
  }
}

void Pipeline::Impl::forward(const Action& action, const Batch& batch) {
  const double begin = now_seconds();
  const int m = action.micro_batch, here = part_of(action.chunk);
  if (m == first && here == stage) latency_from = begin;
  nn::Values values;
  if (here == 0) {
    const auto from = begin_of(batch.input.size(0), count, m - first);
    values = {batch.input.narrow(0, from, rows.at(m))};
  } else {
    values = activations.extract(Key{m, action.chunk}).mapped();
  }
  if (versions) {
    version_of[m] = version_for(m);
    versions->hold(version_of[m]);
    versions->use(version_of[m]);
  }
  if (batch.before_forward) batch.before_forward(m, here);
  values = parts[action.chunk].forward(m, std::move(values));
  if (versions) versions->use(versions->newest());
  if (last_part(here)) {
    begin_loss(m, values, batch);
  } else if (stages > 1) {
    activations[{m, action.chunk}] = std::move(values);
  } else {
    activations[{m, action.chunk + 1}] = std::move(values);
  }
  usage.forward_s[action.chunk] += now_seconds() - begin;
}

void Pipeline::Impl::begin_loss(int micro_batch, const nn::Values& outputs, const Batch& batch) {
  auto leaf = outputs.at(0).detach().requires_grad_();
  const auto from = begin_of(batch.target.size(0), count, micro_batch - first);
  batch.loss(leaf, batch.target.narrow(0, from, rows.at(micro_batch))).backward();
  auto& given = gradients[{micro_batch, chunks - 1}];
  given.resize(outputs.size());
  given[0] = leaf.grad();
}

void Pipeline::Impl::backward(const Action& action, bool final) {
  const double begin = now_seconds();
  const int m = action.micro_batch, here = part_of(action.chunk);
  auto& piece = parts[action.chunk];
  if (action.kind == Action::Kind::weight_gradient) {
    piece.backward_weights(m, final);
    usage.weights_s[action.chunk] += now_seconds() - begin;
    return;
  }
  auto given = gradients.extract(Key{m, action.chunk}).mapped();
  if (versions) versions->use(version_of.at(m));
  auto found =
      kind.splits_backward ? piece.backward_inputs(m, std::move(given)) : piece.backward(m, std::move(given), final);
  if (versions) {
    versions->use(versions->newest());
    versions->let_go(version_of.at(m));
  }
  if (here > 0) gradients[{m, stages > 1 ? action.chunk : action.chunk - 1}] = std::move(found);
  usage.backward_s[action.chunk] += now_seconds() - begin;
  if (m == first && here == stage) usage.latency_s += now_seconds() - latency_from;
}

void Pipeline::Impl::update(const Action& action, const Batch& batch) {
  if (batch.replicas) batch.replicas->exchange();
  versions->begin_update();
  batch.update();
  if (options.vertical_sync) versions->forget_before(version_for(action.micro_batch + 1));
  forget(action.micro_batch);
}

// Which weights a micro-batch is computed with: the newest, or, in step with the first stage, those that it had then.
std::int64_t Pipeline::Impl::version_for(int micro_batch) const {
  if (!options.vertical_sync) return versions->newest();
  return stream_from + std::max(0, micro_batch - (stages - 1));
}

void Pipeline::Impl::forget(int micro_batch) {
  rows.erase(micro_batch);
  version_of.erase(micro_batch);
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
  my.learn(batch.input);
  const auto samples = batch.input.size(0);
  my.first = my.kind.synchronous ? 0 : my.first + my.count;
  my.count = static_cast<int>(
      std::min<std::int64_t>(samples, batch.micro_batches > 0 ? batch.micro_batches : my.options.micro_batches));
  for (int k = 0; k < my.count; ++k) {
    my.rows[my.first + k] = begin_of(samples, my.count, k + 1) - begin_of(samples, my.count, k);
  }
  ++my.usage.steps;
  const double waited = my.mail->waited();
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
  my.usage.waited_s += my.mail->waited() - waited;
}

void Pipeline::skip(const Batch& batch) {
  if (batch.replicas) batch.replicas->contribute_nothing();
  impl_->tied.sum_gradients();
}

void Pipeline::drain(const Batch& batch) {
  auto& my = *impl_;
  if (my.kind.synchronous) return;
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
      my.mail->expect(receive, rows);
      values = my.mail->take(receive);
    }
    values = my.parts[chunk].evaluate(std::move(values));
    if (!my.last_part(here) && my.stages > 1) my.mail->send({Action::Kind::send_activation, 0, chunk}, values, rows);
  }
  my.mail->flush();
  return last() ? values.at(0) : torch::Tensor();
}

torch::nn::Module& Pipeline::part() { return *impl_->part; }
const parallel::Holdings& Pipeline::holdings() const { return impl_->held; }

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
  return (impl_->mail ? impl_->mail->bytes_sent() : 0) + impl_->mesh.pipe().bytes_sent();
}
const PipelineUsage& Pipeline::usage() const { return impl_->usage; }

void Pipeline::clear_usage() {
  auto& usage = impl_->usage;
  const auto chunks = usage.forward_s.size();
  usage = {};
  for (auto* list : {&usage.forward_s, &usage.backward_s, &usage.weights_s}) list->resize(chunks);
}

}  // namespace trireme
