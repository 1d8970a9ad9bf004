#include "trireme/collective/draw/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kMostCells = std::size_t{1} << 24;  // over all rounds: 64 MiB of states

constexpr Buffer kAllBuffers[] = {Buffer::input, Buffer::output, Buffer::scratch, Buffer::stage};

// Elements of input and output, as in the table of schedule.h. A barrier gets one, which stands for "has arrived".
std::size_t input_size(const Call& call) {
  if (call.what == Collective::barrier) return 1;
  bool blocks = call.what == Collective::scatter || call.what == Collective::reduce_scatter ||
                call.what == Collective::all_to_all;
  return blocks ? call.ranks * call.stride : call.count;
}

std::size_t output_size(const Call& call) {
  if (call.what == Collective::barrier) return 1;
  bool blocks =
      call.what == Collective::gather || call.what == Collective::all_gather || call.what == Collective::all_to_all;
  return blocks ? call.ranks * call.stride : call.count;
}

std::vector<int> everyone(int ranks) {
  std::vector<int> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) all[rank] = rank;
  return all;
}

// What the output element at `at` of `rank` must hold in the end.
Value wanted_value(const Call& call, int rank, std::size_t at) {
  auto element = static_cast<int>(at);
  auto own = static_cast<int>(rank * call.stride + at);
  bool root = rank == call.root;
  auto block = call.stride ? static_cast<int>(at / call.stride) : 0;
  auto within = call.stride ? static_cast<int>(at % call.stride) : 0;
  bool padding = static_cast<std::size_t>(within) >= call.count;
  switch (call.what) {
    case Collective::broadcast:
      return {element, {call.root}};
    case Collective::scatter:
      return {own, {call.root}};
    case Collective::gather:
      return root && !padding ? Value{within, {block}} : Value{};
    case Collective::reduce:
      return root ? Value{element, everyone(call.ranks)} : Value{};
    case Collective::all_gather:
      return padding ? Value{} : Value{within, {block}};
    case Collective::reduce_scatter:
      return {own, everyone(call.ranks)};
    case Collective::all_reduce:
      return {element, everyone(call.ranks)};
    case Collective::all_to_all:
      return padding ? Value{} : Value{static_cast<int>(rank * call.stride) + within, {block}};
    case Collective::barrier:
      return {0, everyone(call.ranks)};
  }
  return {};
}

}  // namespace

int ValueTable::number(const Value& value) {
  auto [at, fresh] = numbers_.try_emplace(value, static_cast<int>(all_.size()));
  if (fresh) all_.push_back(value);
  return at->second;
}

int ValueTable::reduce(int left, int right) {
  if (left == 0 || right == 0) return left + right;
  auto [at, fresh] = sums_.try_emplace({left, right}, 0);
  if (fresh) {
    const Value &a = all_[left], &b = all_[right];
    Value sum;
    sum.element = a.element == b.element ? a.element : Value::kMixed;
    std::merge(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(), std::back_inserter(sum.ranks));
    if (news_) sum.ranks.erase(std::unique(sum.ranks.begin(), sum.ranks.end()), sum.ranks.end());
    at->second = number(sum);
  }
  return at->second;
}

Trace::Trace(const Algorithm& algorithm, const Call& shape)
    : shape_(shape), shared_(algorithm.shared), values_(shape.what == Collective::barrier) {
  measure(algorithm);
  set_ends();
  State now = states_[0];
  for (int k = 0; k < static_cast<int>(moves_.size()); ++k) {
    run_round(k, now);
    states_.push_back(now);
  }
  forget_unread();
  find_chunks();
}

std::size_t Trace::index(int rank, Buffer buffer, std::size_t element) const {
  return rank * per_rank_ + offsets_[static_cast<int>(buffer)] + element;
}

void Trace::measure(const Algorithm& algorithm) {
  sizes_[static_cast<int>(Buffer::input)] = input_size(shape_);
  sizes_[static_cast<int>(Buffer::output)] = output_size(shape_);
  Call call = shape_;
  for (call.rank = 0; call.rank < call.ranks; ++call.rank) {
    schedules_.push_back(algorithm.plan(call));
    std::size_t &scratch = sizes_[static_cast<int>(Buffer::scratch)], &stage = sizes_[static_cast<int>(Buffer::stage)];
    scratch = std::max(scratch, schedules_.back().scratch);
    stage = std::max(stage, schedules_.back().stage);
  }
  for (Buffer buffer : kAllBuffers) {
    offsets_[static_cast<int>(buffer)] = per_rank_;
    per_rank_ += size(buffer);
  }
  auto rounds = static_cast<std::size_t>(schedules_[0].rounds);
  if (per_rank_ > kMostCells / shape_.ranks / (rounds + 2)) {
    throw ConfigError(fmt::format(
        "{} by {}: {} ranks with {} elements over {} rounds are too many to draw; take fewer ranks or elements",
        name(shape_.what), algorithm.name, shape_.ranks, shape_.count, rounds));
  }
  moves_.resize(rounds);
}

void Trace::set_ends() {
  states_.emplace_back(shape_.ranks * per_rank_);
  wanted_.resize(shape_.ranks * per_rank_);
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    bool idle = (shape_.what == Collective::broadcast || shape_.what == Collective::scatter) && rank != shape_.root;
    for (std::size_t at = 0; at < size(Buffer::input) && !idle; ++at) {
      int own = values_.number({static_cast<int>(at), {rank}});
      states_[0][index(rank, Buffer::input, at)] = own;
      if (shape_.what == Collective::barrier) states_[0][index(rank, Buffer::output, at)] = own;
    }
    for (std::size_t at = 0; at < size(Buffer::output); ++at) {
      wanted_[index(rank, Buffer::output, at)] = values_.number(wanted_value(shape_, rank, at));
    }
    done_.push_back(schedules_[rank].rounds ? begin_in_place(rank, schedules_[rank].round(0)) : 0);
  }
}

std::size_t Trace::begin_in_place(int rank, const Round& first) {
  std::size_t done = 0;
  for (; done < first.size(); ++done) {
    const Step& step = first[done];
    bool own_part =
        step.kind == StepKind::copy && step.from.buffer == Buffer::input && step.to.buffer == Buffer::output;
    if (!own_part) break;
    Move move{step.kind, rank, rank, rank, step.from, step.to, {}};
    apply(move, states_[0], states_[0]);
  }
  return done;
}

void Trace::run_round(int k, State& now) {
  std::vector<Move>& moves = moves_[k];
  std::vector<Move> exchange;
  State began = shared_ ? now : State{};
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    Round round = schedules_[rank].round(k);
    if (k == 0) round.erase(round.begin(), round.begin() + static_cast<std::ptrdiff_t>(done_[rank]));
    for (const Step& step : round) {
      Move move{step.kind, rank, rank, rank, step.from, step.to, {}};
      if (step.kind == StepKind::combine) move.source.count = step.to.count;
      if (move.local()) {
        // combine reads `ranks` places: as many moves into one target, the first a plain copy.
        int terms = step.kind == StepKind::combine ? shape_.ranks : 1;
        for (int term = 0; term < terms; ++term) {
          if (term > 0) move.source.offset += step.stride;
          move.kind = step.kind == StepKind::combine ? (term ? StepKind::reduce : StepKind::copy) : step.kind;
          apply(move, now, now);
          moves.push_back(move);
        }
      } else if (step.kind == StepKind::read) {
        move.from = step.peer;
        exchange.push_back(move);
      } else if (step.kind == StepKind::reduce_from) {
        move.from = kEveryone;
        move.to = step.peer;
        move.own = step.own;
        exchange.push_back(move);
      }
    }
  }
  match_messages(k, exchange);
  State before = shared_ ? std::move(began) : now;
  for (Move& move : exchange) {
    apply(move, before, now);
    moves.push_back(std::move(move));
  }
}

void Trace::match_messages(int k, std::vector<Move>& out) {
  std::map<std::pair<int, int>, std::vector<Slice>> sent;
  std::map<std::pair<int, int>, std::size_t> taken;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    for (const Step& step : schedules_[rank].round(k)) {
      if (step.kind == StepKind::send) sent[{rank, step.peer}].push_back(step.from);
    }
  }
  std::size_t matched = 0;
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    for (const Step& step : schedules_[rank].round(k)) {
      if (step.kind != StepKind::recv && step.kind != StepKind::recv_reduce) continue;
      auto& queue = sent[{step.peer, rank}];
      std::size_t at = taken[{step.peer, rank}]++;
      if (at >= queue.size() || queue[at].count != step.to.count) {
        throw Error(fmt::format("round {}: rank {} receives what rank {} does not send; run `trireme check`", k, rank,
                                step.peer));
      }
      out.push_back({step.kind, step.peer, rank, rank, queue[at], step.to, {}});
      ++matched;
    }
  }
  for (const auto& [pair, queue] : sent) matched -= queue.size();
  if (matched != 0) throw Error(fmt::format("round {}: somebody sends what nobody receives; run `trireme check`", k));
}

void Trace::apply(Move& move, const State& before, State& now) {
  if (shape_.what == Collective::barrier) {
    // No data moves; what moves is the news of who has arrived.
    move.source = move.target = {Buffer::output, 0, 1};
    if (move.kind == StepKind::recv || move.kind == StepKind::read) move.kind = StepKind::recv_reduce;
  }
  bool adds = move.kind == StepKind::reduce || move.kind == StepKind::recv_reduce;
  std::size_t count = move.target.count;
  move.values.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    int& value = move.values[i];
    if (move.from == kEveryone) {
      for (int rank = 0; rank < shape_.ranks; ++rank) {
        const Slice& source = rank == move.actor && move.own.count > 0 ? move.own : move.source;
        value = values_.reduce(value, before[index(rank, source.buffer, source.offset + i)]);
      }
    } else {
      value = before[index(move.from, move.source.buffer, move.source.offset + i)];
    }
  }
  for (int rank = 0; rank < shape_.ranks; ++rank) {
    if (move.to != kEveryone && move.to != rank) continue;
    for (std::size_t i = 0; i < count; ++i) {
      int& target = now[index(rank, move.target.buffer, move.target.offset + i)];
      target = adds ? values_.reduce(target, move.values[i]) : move.values[i];
    }
  }
}

void Trace::forget_unread() {
  std::vector<bool> read_later(states_[0].size());
  auto touch = [&](int rank, const Slice& slice, bool value) {
    for (int r = 0; r < shape_.ranks; ++r) {
      if (rank != kEveryone && r != rank) continue;
      for (std::size_t i = 0; i < slice.count; ++i) read_later[index(r, slice.buffer, slice.offset + i)] = value;
    }
  };
  auto undo = [&](const Move& move) {
    bool adds = move.kind == StepKind::reduce || move.kind == StepKind::recv_reduce;
    if (!adds) touch(move.to, move.target, false);
  };
  for (int k = rounds(); k >= 0; --k) {
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      for (Buffer buffer : {Buffer::input, Buffer::scratch, Buffer::stage}) {
        for (std::size_t at = 0; at < size(buffer); ++at) {
          std::size_t cell = index(rank, buffer, at);
          if (!read_later[cell]) states_[k][cell] = 0;
        }
      }
    }
    if (k == 0) break;
    const auto& moves = moves_[k - 1];
    auto exchange = std::find_if(moves.begin(), moves.end(), [](const Move& move) { return !move.local(); });
    // All of an exchange writes after all of it has read.
    std::for_each(exchange, moves.end(), undo);
    std::for_each(exchange, moves.end(), [&](const Move& move) {
      touch(move.from, move.source, true);
      touch(move.actor, move.own, true);
    });
    for (auto move = std::make_reverse_iterator(exchange); move != moves.rend(); ++move) {
      undo(*move);
      touch(move->from, move->source, true);
    }
  }
}

std::vector<bool> Trace::cuts(Buffer buffer) const {
  std::vector<bool> cut(size(buffer) + 1);
  for (const auto& moves : moves_) {
    for (const Move& move : moves) {
      for (const Slice& slice : {move.source, move.target}) {
        // Where input and output have the same layout they are cut alike.
        bool twin = slice.buffer <= Buffer::output && buffer <= Buffer::output && size(slice.buffer) == size(buffer);
        if ((slice.buffer != buffer && !twin) || slice.count == 0) continue;
        cut[slice.offset] = cut[slice.offset + slice.count] = true;
      }
    }
  }
  return cut;
}

void Trace::find_chunks() {
  auto alike = [&](int left, int right) {
    const Value &a = values_[left], &b = values_[right];
    return left == 0 ? right == 0 : b.element == a.element + 1 && a.ranks == b.ranks;
  };
  for (Buffer buffer : kAllBuffers) {
    std::size_t count = size(buffer);
    bool blocks = count > shape_.count && shape_.stride > 0 && count == shape_.ranks * shape_.stride;
    auto& starts = chunks_[static_cast<int>(buffer)];
    std::vector<bool> cut = cuts(buffer);
    for (std::size_t at = 0; at < count; ++at) {
      bool begins = at == 0 || cut[at] || (blocks && at % shape_.stride == 0);
      for (std::size_t k = 0; k < states_.size() && !begins; ++k) {
        for (int rank = 0; rank < shape_.ranks && !begins; ++rank) {
          std::size_t cell = index(rank, buffer, at);
          begins = !alike(states_[k][cell - 1], states_[k][cell]);
        }
      }
      if (begins) starts.push_back(at);
    }
    starts.push_back(count);
  }
}

}  // namespace trireme
