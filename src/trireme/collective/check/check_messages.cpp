#include "trireme/collective/check/check_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "trireme/collective/check/check_memory.h"

namespace trireme::checking {

namespace {

bool is_receive(const Step& step) { return step.kind == StepKind::recv || step.kind == StepKind::recv_reduce; }

// The rounds in which the messages of one ordered pair are sent and received, in FIFO order.
struct Link {
  std::vector<int> sends, receives;
};
using Links = std::map<std::pair<int, int>, Link>;  // (sender, receiver)

Links links_of(std::span<const Schedule> schedules) {
  Links links;
  const int ranks = static_cast<int>(schedules.size());
  for (int rank = 0; rank < ranks; ++rank)
    for (int k = 0; k < schedules[rank].rounds; ++k)
      for (const Step& step : schedules[rank].round(k)) {
        if (step.kind == StepKind::send) links[{rank, step.peer}].sends.push_back(k);
        if (is_receive(step)) links[{step.peer, rank}].receives.push_back(k);
      }
  return links;
}

// Runs the ranks as the executor does: all sends and receives of a round are posted at once, then waited for. A receive
// ends when its send is posted; without buffering a send ends only when its receive is posted. Returns the round in
// which each rank ends up, `rounds` for those that finish.
std::vector<int> run(const Links& links, int ranks, int rounds, bool buffered) {
  std::vector<int> at(ranks, 0);
  const auto waits = [&](int rank) {
    for (const auto& [pair, link] : links)
      for (std::size_t i = 0; i < link.sends.size(); ++i) {
        if (pair.second == rank && link.receives[i] == at[rank] && link.sends[i] > at[pair.first]) return true;
        if (!buffered && pair.first == rank && link.sends[i] == at[rank] && link.receives[i] > at[pair.second])
          return true;
      }
    return false;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank)
      for (; at[rank] < rounds && !waits(rank); moved = true) ++at[rank];
  }
  return at;
}

std::string stuck_ranks(const std::vector<int>& at, int rounds) {
  std::string text;
  for (std::size_t rank = 0; rank < at.size(); ++rank)
    if (at[rank] < rounds) text += fmt::format("{}rank {} in round {}", text.empty() ? "" : ", ", rank, at[rank]);
  return text;
}

}  // namespace

bool match(std::span<const Round> rounds, std::vector<Message>& out) {
  const int ranks = static_cast<int>(rounds.size());
  out.clear();
  std::vector<std::vector<Message>> inbox(ranks);  // by receiver, senders ascending
  std::size_t sent = 0;
  for (int rank = 0; rank < ranks; ++rank)
    for (int i = 0; i < static_cast<int>(rounds[rank].size()); ++i)
      if (const Step& step = rounds[rank][i]; step.kind == StepKind::send) {
        inbox[step.peer].push_back({rank, i, step.peer, -1});
        ++sent;
      }
  for (int rank = 0; rank < ranks; ++rank)
    for (int i = 0; i < static_cast<int>(rounds[rank].size()); ++i) {
      if (!is_receive(rounds[rank][i])) continue;
      const int peer = rounds[rank][i].peer;
      auto found = std::partition_point(inbox[rank].begin(), inbox[rank].end(),
                                        [&](const Message& message) { return message.sender < peer; });
      while (found != inbox[rank].end() && found->sender == peer && found->receive >= 0) ++found;
      if (found == inbox[rank].end() || found->sender != peer) return false;
      found->receive = i;
      out.push_back(*found);
    }
  return out.size() == sent;
}

void explain_mismatch(std::span<const Schedule> schedules) {
  const Links links = links_of(schedules);
  const int ranks = static_cast<int>(schedules.size()), rounds = schedules[0].rounds;
  for (const auto& [pair, link] : links) {
    if (link.sends.size() == link.receives.size()) continue;
    // The first round in which the two do not agree tells best which one it is.
    const auto [send, receive] =
        std::mismatch(link.sends.begin(), link.sends.end(), link.receives.begin(), link.receives.end());
    if (link.sends.size() > link.receives.size())
      throw Violation(fmt::format("rank {}, round {}: sends to rank {} a message that is never received", pair.first,
                                  *send, pair.second));
    throw Violation(fmt::format("rank {}, round {}: waits for a message of rank {} that is never sent", pair.second,
                                *receive, pair.first));
  }
  for (const bool buffered : {true, false}) {
    const std::vector<int> at = run(links, ranks, rounds, buffered);
    if (std::ranges::all_of(at, [&](int round) { return round == rounds; })) continue;
    throw Violation(fmt::format("deadlock{}: these wait for each other: {}", buffered ? "" : " without buffering",
                                stuck_ranks(at, rounds)));
  }
  for (const auto& [pair, link] : links)
    for (std::size_t i = 0; i < link.sends.size(); ++i)
      if (link.sends[i] != link.receives[i])
        throw Violation(
            fmt::format("rank {}, round {}: sends what rank {} receives in round {}: both must be one round",
                        pair.first, link.sends[i], pair.second, link.receives[i]));
  throw Violation("messages do not match");
}

}  // namespace trireme::checking
