#include "trireme/collective/run/executor.h"

#include <fmt/format.h>
#include <sched.h>

#include <bit>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/collective/least_sent.h"
#include "trireme/collective/run/executor-inl.h"
#include "trireme/collective/schedules/algorithms.h"
#include "trireme/net/call.h"

namespace trireme {

std::byte* Arena::at_least(std::size_t bytes) {
  if (bytes > bytes_) {
    heap_.release(std::exchange(memory_, nullptr));
    bytes_ = 0;
    memory_ = heap_.allocate(bytes);
    bytes_ = bytes;
  }
  return memory_;
}

namespace {

constexpr std::size_t kShort = 64 << 10;  // bytes of all ranks together

// How many blocks of `count` the buffers of a rank hold, where they hold any.
int input_blocks(Collective what, int ranks) {
  const bool many = what == Collective::scatter || what == Collective::reduce_scatter || what == Collective::all_to_all;
  return many ? ranks : 1;
}
int output_blocks(Collective what, int ranks) {
  const bool many = what == Collective::gather || what == Collective::all_gather || what == Collective::all_to_all;
  return many ? ranks : 1;
}

}  // namespace

Executor::Executor(net::Transport& transport, std::unique_ptr<net::Channel> channel)
    : transport_(transport),
      channel_(std::move(channel)),
      board_(channel_->board()),
      rank_(channel_->rank()),
      ranks_(channel_->size()),
      scratch_(transport.heap()),
      stage_(transport.heap()),
      peers_(ranks_, Peer{}),
      ins_(ranks_),
      outs_(ranks_) {
  for (Collective what : kCollectives) {
    staged_[static_cast<int>(what)] = &find_algorithm(what, Pattern::stages);
    inline_[static_cast<int>(what)] = &find_algorithm(what, Pattern::slots);
  }
}

Executor::~Executor() {
  if (board_ != nullptr) board_->leave_stage(stage_.take());
}

std::size_t Executor::PlanHash::operator()(const PlanKey& key) const {
  auto hash = reinterpret_cast<std::uintptr_t>(key.algorithm);
  for (std::size_t part : {key.count, key.segment, static_cast<std::size_t>(key.root)}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
  }
  return hash ^ hash >> 29;
}

const CallPlan& Executor::plan_for(const Request& request, const Algorithm& algorithm, std::size_t segment) {
  PlanKey key{&algorithm, request.count, segment, request.root};
  if (last_plan_ != nullptr && key == last_key_) return *last_plan_;
  auto& plan = plans_[key];
  if (!plan) {
    Call call{request.what, rank_, ranks_, request.root, request.count, request.count};
    plan = std::make_unique<CallPlan>(algorithm, call, segment);
  }
  last_key_ = key;
  last_plan_ = plan.get();
  return *plan;
}

void Executor::run(const Request& request, Duration timeout, const net::Patience& patience) {
  if (!broken_.empty()) throw Aborted("this communicator failed before and cannot go on: " + broken_);
  ++sequence_;
  try {
    transport_.check();
    bind_shape(request);
    auto& call = shape_.call;
    call.sequence = sequence_;
    transport_.enter(call);
    Run run(request, call, patience, net::Watch(transport_, *channel_, call, timeout));
    dispatch(run);
  } catch (const Error& error) {
    broken_ = error.what();
    transport_.abort(error.what());  // before the channel goes: the others should hear why
    channel_->cancel();
    transport_.leave();
    throw;
  }
  transport_.leave();
}

void Executor::bind_shape(const Request& request) {
  const auto dtype = static_cast<std::uint8_t>(request.dtype);
  const auto& is = shape_;
  if (is.algorithm == request.algorithm && is.call.count == request.count && is.call.dtype == dtype &&
      is.op == request.op && is.call.root == request.root) {
    return;
  }
  const bool folds = reduces(request.what);
  // Message algorithms sum first and divide at the end; a fold over all ranks divides as it goes.
  const Op op = !request.algorithm->shared && request.op == Op::avg ? Op::sum : request.op;
  const auto bytes = request.count * size_of(request.dtype) * (has_blocks(request.what) ? ranks_ : 1);
  shape_ = {.algorithm = request.algorithm,
            .op = request.op,
            .call = {0, request.count, request.root, static_cast<std::uint8_t>(request.what), dtype,
                     static_cast<std::uint8_t>(request.op),
                     static_cast<std::uint8_t>(request.algorithm - algorithms().data())},
            .least_sent =
                trireme::least_sent(request.what, request.count * size_of(request.dtype), request.root, rank_, ranks_),
            .fits_posts = net::Post::fits(bytes),
            .fold = folds ? fold_function(request.dtype, op) : nullptr,
            .reduce = folds ? reduce_function(request.dtype, op) : nullptr};
}

void Executor::dispatch(Run& run) {
  const auto& request = run.request;
  if (!request.algorithm->shared) return run_messages(run);
  if (board_ == nullptr) {
    throw ConfigError(fmt::format("algorithm '{}' needs ranks that share memory, which transport {} does not give",
                                  request.algorithm->name, transport_.name()));
  }
  shared_bytes_.store(shared_bytes_.load(std::memory_order_relaxed) + shape_.least_sent, std::memory_order_relaxed);
  board_->begin_meeting();
  if (request.algorithm->plan == schedules::direct) return run_direct(run);
  return shape_.fits_posts ? run_in_posts(run) : run_staged(run);
}

// ---- Meeting on the board ----

// Waits for everyone and compares what all are calling: a disagreement is seen, and named, by every rank.
void Executor::meet(Run& run) {
  const auto sequence = run.call.sequence;
  auto disagree = [&](int peer, const net::CallId& theirs) {
    throw Mismatch(
        net::describe_mismatch(channel_->world_rank(rank_), run.call, 0, channel_->world_rank(peer), theirs, 0));
  };
  board_->publish(run.call);
  board_->await_posts(sequence, run.patience, [&](int peer) {
    if (auto theirs = board_->message_instead_of_post(peer, sequence)) disagree(peer, *theirs);
    run.watch(peer);
  });
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    auto theirs = board_->post(peer).call();
    if (theirs != run.call) [[unlikely]]
      disagree(peer, theirs);
  }
}

void Executor::sync(Run& run) { board_->sync(run.patience, run.watch); }

// Small calls: the stage is the post itself, so one wait does.
void Executor::run_in_posts(Run& run) {
  run.plan = &plan_for(run.request, *run.request.algorithm, 0);
  const auto& schedule = run.plan->schedule(0);
  for (int peer = 0; peer < ranks_; ++peer) peers_[peer].stage = board_->post(peer).payload;
  bind_segment(run, 0);
  local_steps(run, schedule.round(0));
  meet(run);
  board_->prepare_next();
  for (int k = 1; k < schedule.rounds(); ++k) {
    if (k > 1) sync(run);
    local_steps(run, schedule.round(k));
    shared_steps(run, schedule.round(k));
  }
}

// Whether every buffer that a direct schedule reaches into can be reached. All ranks look at the same posts, so all
// answer the same.
bool Executor::peers_readable(const Run& run) const {
  const auto what = run.request.what;
  const bool root_input = what == Collective::broadcast || what == Collective::scatter;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& post = board_->post(rank);
    const bool is_root = rank == run.request.root;
    if (post.input == 0 && (!root_input || is_root)) return false;
    const bool written = what == Collective::all_reduce || (what == Collective::reduce && is_root);
    if (post.output == 0 && written) return false;
  }
  return true;
}

void Executor::bind_peers() {
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& post = board_->post(rank);
    peers_[rank].input = post.input != 0 ? board_->space().at(post.input) : nullptr;
    peers_[rank].output = post.output != 0 ? board_->space().at(post.output) : nullptr;
  }
}

// Long calls on buffers that peers can reach: no copies. If one of them is private, all go through stages instead.
void Executor::run_direct(Run& run) {
  const auto& request = run.request;
  const auto bytes = request.count * size_of(request.dtype);
  auto address = [&](const void* memory, int blocks) {
    return memory != nullptr ? board_->space().address_of(memory, bytes * blocks) : 0;
  };
  auto& mine = board_->post(rank_);
  mine.input = address(request.input, input_blocks(request.what, ranks_));
  mine.output = address(request.output, output_blocks(request.what, ranks_));
  meet(run);
  if (!peers_readable(run)) return run_staged_rounds(run);
  run.plan = &plan_for(request, *request.algorithm, 0);
  bind_peers();
  bind_segment(run, 0);
  const auto& schedule = run.plan->schedule(0);
  for (int k = 0; k < schedule.rounds(); ++k) {
    local_steps(run, schedule.round(k));
    shared_steps(run, schedule.round(k));
    sync(run);  // after the last round too: peers may still be reading my input
  }
}

void Executor::run_staged(Run& run) {
  meet(run);
  run_staged_rounds(run);
}

// Learns from the call before: all have posted this one, and so have said what that one took them.
void Executor::begin_staged(Collective what, std::size_t bytes) {
  if (staged_call_.tries()) staged_call_.choice->learn(staged_call_.turn, board_->most_spent(staged_call_.number));
  auto& choice = stage_stores_[static_cast<int>(what)][std::bit_width(bytes)];
  staged_call_ = {staged_call_.number + 1, &choice, choice.begin()};
}

// Invariant: everyone is in this call, so nobody reads my stage of the call before: it may move. Segment j lives in
// region j mod depth of the stage, which segment j + depth takes only after j's last round has been synchronized.
void Executor::run_staged_rounds(Run& run) {
  const auto& request = run.request;
  // Short vectors are cheaper to fold whole, by everyone, than to synchronize for twice more.
  const bool is_short = request.count * run.element * ranks_ <= kShort;
  const auto& fallback = is_short ? inline_ : staged_;
  const auto& algorithm =
      request.algorithm->plan == schedules::direct ? *fallback[static_cast<int>(request.what)] : *request.algorithm;
  const auto per_block = request.stage_chunk / size_of(request.dtype) / (has_blocks(request.what) ? ranks_ : 1);
  run.plan = &plan_for(request, algorithm, std::max<std::size_t>(per_block, 64));
  const auto& plan = *run.plan;
  const auto bytes = plan.stage() * plan.depth() * size_of(request.dtype);
  std::byte* mine = stage_.at_least(bytes);
  board_->set_stage(mine, bytes);
  peers_[rank_].stage = mine;
  const auto size = std::max<std::size_t>(request.count * run.element, 1);
  begin_staged(request.what, size);
  run.stage_store = staged_call_.store();
  const double start = staged_call_.tries() ? now_seconds() : 0;
  for (int t = 0; t < plan.supersteps(); ++t) {
    for (int j = std::max(0, t - plan.rounds() + 1); j <= t && j < plan.segments(); ++j) {
      const auto steps = plan.schedule(j).round(t - j);
      bind_segment(run, j);
      local_steps(run, steps);
      shared_steps(run, steps);
    }
    if (t + 1 < plan.supersteps()) sync(run);
    if (t == 0) {
      for (int rank = 0; rank < ranks_; ++rank) peers_[rank].stage = board_->stage(rank);
    }
  }
  if (staged_call_.tries())
    board_->note_spent(staged_call_.number, (now_seconds() - start) / static_cast<double>(size));
}

// ---- Steps ----

void Executor::local_steps(Run& run, std::span<const Step> steps) {
  const auto element = run.element;
  for (const Step& step : steps) {
    if (step.kind == StepKind::copy) {
      auto* to = place(run, step.to);
      const auto* from = place(run, step.from);
      if (to != from) {
        const auto store = step.to.buffer == Buffer::stage ? run.stage_store : Store::plain;
        copy_bytes(to, from, step.to.count * element, store);
      }
    } else if (step.kind == StepKind::reduce) {
      shape_.reduce(place(run, step.to), place(run, step.from), step.to.count);
    } else if (step.kind == StepKind::combine) {
      const auto* first = place(run, step.from);
      for (int r = 0; r < ranks_; ++r) ins_[r] = first + r * step.stride * element;
      outs_[0] = place(run, step.to);
      shape_.fold(ins_, std::span(outs_).first(1), step.to.count, Store::plain);
    }
  }
}

void Executor::shared_steps(Run& run, std::span<const Step> steps) {
  const auto element = run.element;
  for (const Step& step : steps) {
    if (step.kind == StepKind::read) {
      std::memcpy(place(run, step.to), place_of(run, step.peer, step.from), step.to.count * element);
    } else if (step.kind == StepKind::reduce_from) {
      fold_from_all(run, step);
    }
  }
}

void Executor::fold_from_all(Run& run, const Step& step) {
  const int ranks = ranks_;
  for (int r = 0; r < ranks; ++r) ins_[r] = place_of(run, r, step.from);
  if (step.own.count > 0) ins_[rank_] = place(run, step.own);
  const bool to_all = step.peer == kEveryone;
  const int outs = to_all ? ranks : 1;
  for (int i = 0; i < outs; ++i) outs_[i] = place_of(run, to_all ? i : step.peer, step.to);
  const auto store = step.from.buffer == Buffer::input ? run.request.store : Store::plain;
  shape_.fold(ins_, std::span(outs_).first(outs), step.to.count, store);
}

}  // namespace trireme
