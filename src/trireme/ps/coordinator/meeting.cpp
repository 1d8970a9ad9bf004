#include "trireme/ps/coordinator/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "trireme/base/error.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {
namespace {

constexpr std::size_t kRemembered = 64;
constexpr std::size_t kMostCounters = 4096;

std::string good(std::uint32_t parties, const std::vector<double>& values) {
  return Packer().put(true).put(parties).list(values).take();
}
std::string bad(const std::string& why) { return Packer().put(false).text(why).take(); }

}  // namespace

std::vector<Meeting::Answer> Meeting::sum(std::uint64_t link, std::uint64_t request, WorkerId worker, Unpacker& from,
                                          const std::vector<WorkerId>& workers) {
  std::string name = from.text();
  double longest = from.get<double>();
  auto values = from.list<double>();
  from.end();
  auto found = std::ranges::find(sums_, name, &Sum::name);
  if (found == sums_.end()) {
    auto old = std::ranges::find(sums_, true, &Sum::done);
    if (sums_.size() >= kRemembered && old != sums_.end()) sums_.erase(old);
    found = sums_.insert(sums_.end(), Sum{name, {}, false, 0, {}});
  }
  if (found->done) return {{link, request, good(found->parties, found->result)}};
  std::vector<Answer> answers;
  if (!found->waiting.empty() && found->waiting[0].values.size() != values.size()) {
    auto why = fmt::format("sum '{}': worker {} brings {} numbers, worker {} brought {}", name, worker, values.size(),
                           found->waiting[0].worker, found->waiting[0].values.size());
    for (auto& party : found->waiting) answers.push_back({party.link, party.request, bad(why)});
    answers.push_back({link, request, bad(why)});
    sums_.erase(found);
    return answers;
  }
  std::erase_if(found->waiting, [&](auto& party) { return party.worker == worker; });
  found->waiting.push_back({link, request, worker, std::move(values), Deadline::in_seconds(longest)});
  conclude(*found, workers, answers);
  return answers;
}

void Meeting::conclude(Sum& sum, const std::vector<WorkerId>& workers, std::vector<Answer>& answers) {
  auto here = [&](WorkerId id) { return std::ranges::find(sum.waiting, id, &Party::worker) != sum.waiting.end(); };
  if (sum.done || sum.waiting.empty() || !std::ranges::all_of(workers, here)) return;
  std::ranges::sort(sum.waiting, {}, &Party::worker);
  sum.result.assign(sum.waiting[0].values.size(), 0.0);
  for (auto& party : sum.waiting) {
    for (std::size_t i = 0; i < sum.result.size(); ++i) sum.result[i] += party.values[i];
  }
  sum.parties = static_cast<std::uint32_t>(sum.waiting.size());
  sum.done = true;
  for (auto& party : sum.waiting) answers.push_back({party.link, party.request, good(sum.parties, sum.result)});
  sum.waiting.clear();
}

Meeting::Answer Meeting::ticket(std::uint64_t link, std::uint64_t request, Unpacker& from) {
  std::string name = from.text();
  auto limit = from.get<std::uint64_t>();
  from.end();
  const auto last = std::ranges::find(counters_.rbegin(), counters_.rend(), name, &Counter::name);
  if (last != counters_.rend()) {
    counters_.splice(counters_.end(), counters_, std::prev(last.base()));
  } else if (limit == 0) {
    return {link, request, Packer().put(true).put(false).put(std::uint64_t{0}).take()};
  } else {
    if (counters_.size() >= kMostCounters) counters_.pop_front();
    counters_.push_back({name});
  }
  std::uint64_t& next = counters_.back().next;
  const bool given = next < limit;
  return {link, request, Packer().put(true).put(given).put(given ? next++ : next).take()};
}

std::vector<Meeting::Answer> Meeting::review(const std::vector<WorkerId>& workers) {
  std::vector<Answer> answers;
  for (Sum& sum : sums_) {
    conclude(sum, workers, answers);
    for (auto at = sum.waiting.begin(); at != sum.waiting.end();) {
      if (!at->deadline.passed()) {
        ++at;
        continue;
      }
      std::string missing;
      for (WorkerId id : workers) {
        if (std::ranges::find(sum.waiting, id, &Party::worker) != sum.waiting.end()) continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", id);
      }
      answers.push_back({at->link, at->request,
                         bad(fmt::format("sum '{}': worker {} did not come within {:g} s", sum.name, missing,
                                         at->deadline.span_seconds()))});
      at = sum.waiting.erase(at);
    }
  }
  return answers;
}

void Meeting::forget(WorkerId worker) {
  for (Sum& sum : sums_) std::erase_if(sum.waiting, [&](auto& party) { return party.worker == worker; });
}

}  // namespace trireme::ps
