#include "trireme/collective/draw/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace trireme {
namespace {

// Moves that cross from one rank to another.
std::vector<const Move*> messages_of(const std::vector<Move>& moves) {
  std::vector<const Move*> found;
  for (const Move& move : moves) {
    if (!move.local() && move.kind != StepKind::reduce_from) found.push_back(&move);
  }
  return found;
}

template <typename Key>
bool all_same(const std::vector<const Move*>& moves, Key key) {
  return std::all_of(moves.begin(), moves.end(), [&](const Move* move) { return key(*move) == key(*moves[0]); });
}

std::string who_to_whom(const std::vector<const Move*>& messages, int ranks) {
  const Move& first = *messages[0];
  bool reads = first.kind == StepKind::read;
  std::set<int> senders, receivers;
  for (const Move* move : messages) {
    senders.insert(move->from);
    receivers.insert(move->to);
  }
  auto ring = [&](const Move& move) { return (move.to - move.from + ranks) % ranks; };
  auto cube = [&](const Move& move) { return move.to ^ move.from; };
  bool everyone = static_cast<int>(senders.size()) == ranks && static_cast<int>(receivers.size()) == ranks;
  if (messages.size() == 1) {
    return reads ? fmt::format("Rank {} reads from rank {}", first.to, first.from)
                 : fmt::format("Rank {} sends to rank {}", first.from, first.to);
  }
  if (ranks == 2) return reads ? "Both ranks read from each other" : "Both ranks send to each other";
  if (everyone && all_same(messages, ring)) {
    int step = ring(first);
    if (reads) return fmt::format("Every rank reads from the one {} before it", step);
    if (step == 1) return "Every rank sends to its right neighbour";
    if (step == ranks - 1) return "Every rank sends to its left neighbour";
    return fmt::format("Every rank sends to the one {} further on", step);
  }
  std::set<std::pair<int, int>> pairs;
  for (const Move* move : messages) pairs.emplace(move->from, move->to);
  bool mutual = std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return pairs.contains({pair.second, pair.first});
  });
  if (mutual && all_same(messages, cube)) {
    return fmt::format("{} at distance {} exchange", everyone ? "Partners" : "Pairs", cube(first));
  }
  if (mutual && pairs.size() == senders.size()) return fmt::format("{} pairs exchange", pairs.size() / 2);
  if (receivers.size() == 1) {
    return reads ? fmt::format("Rank {} reads from {} others", first.to, senders.size())
                 : fmt::format("{} ranks send to rank {}", senders.size(), first.to);
  }
  if (senders.size() == 1) {
    return reads ? fmt::format("{} ranks read from rank {}", receivers.size(), first.from)
                 : fmt::format("Rank {} sends to {} others", first.from, receivers.size());
  }
  if (everyone && messages.size() == static_cast<std::size_t>(ranks) * (ranks - 1)) {
    return reads ? "Every rank reads from every other" : "Every rank sends to every other";
  }
  return reads ? fmt::format("{} ranks read from {} others", receivers.size(), senders.size())
               : fmt::format("{} ranks send to {} others", senders.size(), receivers.size());
}

std::string outcome(const Trace& trace, const std::vector<const Move*>& messages) {
  if (trace.shape().what == Collective::barrier) return "to say who has arrived.";
  auto adds = std::count_if(messages.begin(), messages.end(),
                            [](const Move* move) { return move->kind == StepKind::recv_reduce; });
  if (adds == static_cast<std::ptrdiff_t>(messages.size())) return "and what arrives is added.";
  return adds == 0 ? "and what arrives is kept." : "and part of what arrives is added.";
}

std::string describe_folds(const Trace& trace, const std::vector<Move>& moves) {
  std::set<int> actors;
  const Move* fold = nullptr;
  for (const Move& move : moves) {
    if (move.kind != StepKind::reduce_from) continue;
    actors.insert(move.actor);
    fold = &move;
  }
  if (!fold) return "";
  bool all = static_cast<int>(actors.size()) == trace.shape().ranks;
  bool part = fold->source.count < std::max(trace.shape().count, std::size_t{1}) || fold->to == kEveryone;
  std::string who = all ? "Every rank" : fmt::format("{} of the ranks", actors.size());
  if (actors.size() == 1) who = fmt::format("Rank {}", *actors.begin());
  std::string where = fold->to == kEveryone            ? "in everybody's output"
                      : all && fold->to == fold->actor ? "in its own memory"
                                                       : fmt::format("in rank {}'s output", fold->to);
  return fmt::format("{} folds {} of everybody's memory and stores the sum {}.", who,
                     part && all ? "its own part" : "the whole", where);
}

std::string describe_local(const std::vector<Move>& moves) {
  bool stages = false, adds = false;
  for (const Move& move : moves) {
    stages |= move.kind == StepKind::copy && move.target.buffer == Buffer::stage;
    adds |= move.kind == StepKind::reduce;
  }
  if (stages) return "What others need is copied to the stage.";
  return adds ? "What waits in scratch is added." : "";
}

}  // namespace

std::vector<int> chunks_in(const Trace& trace, const Slice& slice) {
  const auto& starts = trace.chunks(slice.buffer);
  std::vector<int> found;
  auto at = std::upper_bound(starts.begin(), starts.end(), slice.offset) - 1;
  for (; at + 1 < starts.end() && *at < slice.offset + slice.count; ++at) {
    found.push_back(static_cast<int>(at - starts.begin()));
  }
  return found;
}

int piece_of(const Trace& trace, const Value& value) {
  if (value.ranks.empty()) return -1;
  if (value.element < 0) return value.element;
  const Call& call = trace.shape();
  if (call.what == Collective::gather || call.what == Collective::all_gather) return value.ranks[0];
  if (has_blocks(call.what)) return value.element / static_cast<int>(std::max(call.stride, std::size_t{1}));
  const auto& starts = trace.chunks(Buffer::output);
  auto at = std::upper_bound(starts.begin(), starts.end(), static_cast<std::size_t>(value.element));
  return static_cast<int>(at - starts.begin()) - 1;
}

std::string_view piece_word(const Trace& trace) { return has_blocks(trace.shape().what) ? "block" : "chunk"; }

std::string contribution_text(const Value& value, int ranks) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    auto times = std::count(value.ranks.begin(), value.ranks.end(), rank);
    if (times > 1) return fmt::format("{:!<{}}", "", ranks);  // counted twice
    text += times ? std::string(1, kDigits[rank % kDigits.size()]) : "·";
  }
  return text;
}

std::string describe_round(const Trace& trace, int round) {
  const auto& moves = trace.moves(round);
  auto messages = messages_of(moves);
  std::vector<std::string> sentences{describe_local(moves), describe_folds(trace, moves)};
  if (!messages.empty()) {
    sentences.push_back(who_to_whom(messages, trace.shape().ranks) + ", " + outcome(trace, messages));
  }
  std::string text;
  for (const auto& sentence : sentences) {
    if (!sentence.empty()) text += (text.empty() ? "" : " ") + sentence;
  }
  return text.empty() ? "Only copies within ranks." : text;
}

}  // namespace trireme
