// What a stage does, action by action.
#include "trireme/base/clock.h"
#include "trireme/mesh/schedules/lists.h"
#include "trireme/parallel/pipeline/pipeline_impl.h"

namespace trireme {
namespace {

constexpr std::size_t kExpectAhead = 2;  // messages that are received while others are worked on

}  // namespace

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
      channel->expect(actions[ahead], rows.at(actions[ahead].micro_batch));
      ++expected;
    }
    if (pipelines::receives(actions[k])) --expected;
    const bool final = actions[k].kind == completes && last_gradient.at(actions[k].chunk) == k;
    act(actions[k], batch, final);
  }
  channel->flush();
}

void Pipeline::Impl::act(const Action& action, const Batch& batch, bool final) {
  const Key key{action.micro_batch, action.chunk};
  switch (action.kind) {
    case Action::Kind::receive_activation:
      activations[key] = channel->take(action);
      break;
    case Action::Kind::receive_gradient:
      gradients[key] = channel->take(action);
      break;
    case Action::Kind::send_activation:
      channel->send(action, activations.extract(key).mapped(), rows.at(action.micro_batch));
      break;
    case Action::Kind::send_gradient:
      channel->send(action, gradients.extract(key).mapped(), rows.at(action.micro_batch));
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

}  // namespace trireme
