// Calls that go by messages: supersteps of all segments under way, each posted as a whole and then waited for.
#include <sched.h>

#include <algorithm>

#include "trireme/collective/run/executor-inl.h"

namespace trireme {

void Executor::run_messages(Run& run) {
  const auto& request = run.request;
  // Whoever meets on the board instead learns that this rank does not.
  if (board_ != nullptr) board_->note_message(run.call);
  run.plan = &plan_for(request, *request.algorithm, request.segment / size_of(request.dtype));
  const auto& plan = *run.plan;
  scratch_base_ = scratch_.at_least(plan.scratch() * plan.depth() * size_of(request.dtype));
  if (tickets_.size() < plan.widest_superstep()) tickets_.resize(plan.widest_superstep());
  for (int t = 0; t < plan.supersteps(); ++t) {
    std::size_t posted = 0;
    for (int j = std::max(0, t - plan.rounds() + 1); j <= t && j < plan.segments(); ++j) {
      const auto steps = plan.schedule(j).round(t - j);
      bind_segment(run, j);
      local_steps(run, steps);
      post_messages(run, steps, posted);
    }
    await_tickets(run, posted);
  }
  const bool has_result = request.what != Collective::reduce || rank_ == request.root;
  if (request.op == Op::avg && reduces(request.what) && has_result) {
    divide(request.dtype, request.output, request.count, ranks_);
  }
}

void Executor::post_messages(Run& run, std::span<const Step> steps, std::size_t& ticket) {
  const auto element = run.element;
  for (const Step& step : steps) {
    if (step.kind == StepKind::send) {
      channel_->send(step.peer, run.call, {place(run, step.from), step.from.count * element}, tickets_[ticket++]);
    } else if (step.kind == StepKind::recv || step.kind == StepKind::recv_reduce) {
      net::Sink sink{place(run, step.to), step.to.count * element,
                     step.kind == StepKind::recv_reduce ? shape_.reduce : nullptr, static_cast<std::uint32_t>(element)};
      channel_->recv(step.peer, run.call, sink, tickets_[ticket++]);
    }
  }
}

void Executor::await_tickets(Run& run, std::size_t tickets) {
  std::size_t done = 0;
  for (int quiet = 0;;) {
    while (done < tickets && tickets_[done].done) ++done;
    if (done == tickets) return;
    if (channel_->progress()) {
      quiet = 0;
    } else if (++quiet <= run.patience.spins) {
      net::pause_cpu();
    } else if (quiet <= run.patience.spins + run.patience.yields) {
      sched_yield();
    } else {
      run.watch(channel_->waiting_for());
      channel_->idle(std::chrono::milliseconds(1));
    }
    if ((quiet & 1023) == 1023) run.watch(channel_->waiting_for());
  }
}

}  // namespace trireme
