#include "trireme/cluster/sim/fair_share.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace trireme::cluster {
namespace {

constexpr double kRateSlack = 1e-11;  // relative: what rounding may do to a rate
constexpr int kExact = 256;           // changes of a sum before it is made anew

}  // namespace

int FairShare::add(std::span<const int> links, double limit) {
  int id = static_cast<int>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& flow = flows_[id];
  flow.hops.clear();
  for (int link : links) {
    Link& over = links_[link];
    flow.hops.push_back({link, static_cast<int>(over.flows.size())});
    over.flows.push_back({id, static_cast<int>(flow.hops.size()) - 1});
    if (!std::exchange(over.dirty, true)) dirty_.push_back(link);
  }
  flow.limit = limit;
  flow.rate = flow.before = 0;
  flow.bottleneck = -1;
  flow.added = true;
  choose(id);
  return id;
}

void FairShare::remove(int id) {
  Flow& flow = flows_[id];
  for (const Hop& hop : flow.hops) {
    Link& over = links_[hop.link];
    const Entry last = over.flows.back();
    over.flows[hop.position] = last;
    flows_[last.flow].hops[last.hop].position = hop.position;
    over.flows.pop_back();
    change_used(over, -flow.rate);
    if (!std::exchange(over.dirty, true)) dirty_.push_back(hop.link);
  }
  bind(flow, -1);
  if (flow.chosen) {
    flow.chosen = false;
    std::erase(chosen_, id);
  }
  flow.hops.clear();
  free_.push_back(id);
}

void FairShare::choose(int id) {
  Flow& flow = flows_[id];
  if (std::exchange(flow.chosen, true)) return;
  flow.before = flow.rate;
  chosen_.push_back(id);
}

void FairShare::bind(Flow& flow, int link) {
  if (flow.bottleneck >= 0) --links_[flow.bottleneck].bound;
  if (link >= 0) ++links_[link].bound;
  flow.bottleneck = link;
}

void FairShare::change_used(Link& over, double by) {
  over.used += by;
  ++over.changes;
}

// Not while some rates are in the sum and others not yet.
void FairShare::make_exact(Link& over) {
  if (over.changes < kExact) return;
  over.changes = 0;
  over.used = 0;
  for (const Entry& entry : over.flows) over.used += flows_[entry.flow].rate;
}

void FairShare::settle(int id, double rate, int bottleneck) {
  Flow& flow = flows_[id];
  flow.open = false;
  flow.rate = rate;
  bind(flow, bottleneck);
  for (const Hop& hop : flow.hops) {
    Link& over = links_[hop.link];
    over.left -= rate;
    --over.open;
    over.fastest = std::max(over.fastest, rate);
  }
}

// Raises all chosen flows together; each stops at its limit or where a link is full.
void FairShare::fill() {
  for (int link : touched_) links_[link].touched = false;
  touched_.clear();
  queue_.clear();
  by_limit_ = chosen_;
  std::sort(by_limit_.begin(), by_limit_.end(), [&](int a, int b) { return flows_[a].limit < flows_[b].limit; });
  for (int id : chosen_) {
    flows_[id].open = true;
    for (const Hop& hop : flows_[id].hops) {
      Link& over = links_[hop.link];
      if (!std::exchange(over.touched, true)) {
        touched_.push_back(hop.link);
        over.open = over.chosen = 0;
        over.left = over.capacity - over.used;
        over.level = -1;
        over.fastest = 0;
      }
      over.left += flows_[id].before;
      ++over.open;
      ++over.chosen;
    }
  }
  for (int link : touched_) {
    const Link& over = links_[link];
    queue_.emplace_back(std::max(0.0, over.left) / over.open, link);
  }
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
  std::size_t next = 0;
  for (;;) {
    while (next < by_limit_.size() && !flows_[by_limit_[next]].open) ++next;
    if (next == by_limit_.size()) return;
    const double limit = flows_[by_limit_[next]].limit;
    if (queue_.empty() || limit <= queue_.front().first * (1 + kRateSlack)) {
      settle(by_limit_[next], limit, -1);
      continue;
    }
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    auto [share, link] = queue_.back();
    queue_.pop_back();
    Link& over = links_[link];
    if (over.open == 0) continue;
    // Shares only rise while others settle, so one that is still what it was is the least of all.
    const double now = std::max(0.0, over.left) / over.open;
    if (now > share * (1 + kRateSlack)) {
      queue_.emplace_back(now, link);
      std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
      continue;
    }
    over.level = now;
    for (std::size_t i = 0; i < over.flows.size(); ++i) {
      const int id = over.flows[i].flow;
      if (flows_[id].chosen && flows_[id].open) settle(id, now, link);
    }
  }
}

void FairShare::ask_others() {
  for (std::size_t t = 0; t < touched_.size(); ++t) {
    const int link = touched_[t];
    const Link& over = links_[link];
    if (over.chosen == static_cast<int>(over.flows.size()) || (over.level < 0 && over.bound == 0)) continue;
    const bool full = over.left <= over.capacity * kRateSlack;
    for (const Entry& entry : over.flows) {
      const Flow& flow = flows_[entry.flow];
      if (flow.chosen) continue;
      const bool lost = flow.bottleneck == link && !(full && flow.rate >= over.fastest * (1 - kRateSlack));
      const bool unfair = over.level >= 0 && flow.rate > over.level * (1 + kRateSlack);
      if (lost || unfair) choose(entry.flow);
    }
  }
}

std::span<const int> FairShare::solve() {
  changed_.clear();
  for (int link : dirty_) {
    links_[link].dirty = false;
    for (std::size_t i = 0; i < links_[link].flows.size(); ++i) {
      const int id = links_[link].flows[i].flow;
      if (flows_[id].bottleneck == link) choose(id);
    }
  }
  dirty_.clear();
  for (std::size_t asked = 0; asked != chosen_.size();) {
    asked = chosen_.size();
    fill();
    ask_others();
  }
  for (int id : chosen_) {
    Flow& flow = flows_[id];
    flow.chosen = false;
    for (const Hop& hop : flow.hops) change_used(links_[hop.link], flow.rate - flow.before);
    const bool moved = std::abs(flow.rate - flow.before) > flow.before * kRateSlack;
    if (moved || std::exchange(flow.added, false)) changed_.push_back(id);
  }
  chosen_.clear();
  for (int link : touched_) make_exact(links_[link]);
  return changed_;
}

}  // namespace trireme::cluster
