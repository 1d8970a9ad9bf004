#include "trireme/ps/coordinator/placement.h"

#include <algorithm>

namespace trireme::ps {
namespace {

bool contains(const std::vector<ServerId>& list, ServerId id) { return std::ranges::find(list, id) != list.end(); }

}  // namespace

void Placement::begin(std::size_t shards, const std::vector<Candidate>& servers, std::size_t replicas) {
  const std::size_t s = servers.size(), wanted = std::min(replicas, s);
  chains_.assign(shards, {});
  whole_.assign(shards, {});
  retiring_.assign(shards, kNobody);
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    std::size_t head = shard % s;
    for (std::size_t i = 0; i < s; ++i) {
      auto& kept = servers[i].kept;
      if (std::ranges::find(kept, shard) != kept.end()) head = i;
    }
    // The k-th shard of a head has its next copy k servers further on, so that a death spreads over all others.
    std::size_t shift = s > 1 ? shard / s % (s - 1) : 0;
    chains_[shard].push_back(servers[head].id);
    for (std::size_t r = 1; r < wanted; ++r) {
      std::size_t step = 1 + (shift + r - 1) % (s - 1);
      chains_[shard].push_back(servers[(head + step) % s].id);
    }
    whole_[shard] = {servers[head].id};
  }
}

void Placement::synced(std::uint32_t shard, ServerId server) {
  if (shard < chains_.size() && contains(chains_[shard], server)) whole_[shard].insert(server);
}

std::size_t Placement::load(ServerId server) const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < chains_.size(); ++i) sum += contains(chains_[i], server) && retiring_[i] != server;
  return sum;
}

std::size_t Placement::heads(ServerId server) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(chains_, [&](auto& chain) { return !chain.empty() && chain.front() == server; }));
}

bool Placement::carries(ServerId server) const {
  return std::ranges::any_of(chains_, [&](auto& chain) { return contains(chain, server); });
}

bool Placement::whole(std::size_t copies) const {
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    if (chains_[i].size() != copies || whole_[i].size() != copies || retiring_[i] != kNobody) return false;
  }
  return true;
}

std::vector<std::uint32_t> Placement::lost() const {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t i = 0; i < chains_.size(); ++i) {
    if (chains_[i].empty()) shards.push_back(i);
  }
  return shards;
}

bool Placement::bury(const std::vector<Candidate>& servers) {
  bool changed = false;
  for (std::uint32_t shard = 0; shard < chains_.size(); ++shard) {
    auto& chain = chains_[shard];
    auto dead = [&](ServerId id) { return std::ranges::find(servers, id, &Candidate::id) == servers.end(); };
    if (std::ranges::any_of(chain, dead)) {
      changed = true;
      std::erase_if(chain, dead);
      std::erase_if(whole_[shard], dead);
      if (dead(retiring_[shard])) retiring_[shard] = kNobody;
      // Only who has it whole can lead. What is not whole is of no use without a leader.
      std::stable_partition(chain.begin(), chain.end(), [&](ServerId id) { return whole_[shard].contains(id); });
      if (whole_[shard].empty()) chain.clear();
    }
    if (!chain.empty()) continue;
    for (auto& server : servers) {
      if (std::ranges::find(server.kept, shard) == server.kept.end()) continue;
      chain = {server.id};
      whole_[shard] = {server.id};
      changed = true;
      break;
    }
  }
  return changed;
}

bool Placement::grow(std::uint32_t shard, const std::vector<ServerId>& eligible, std::size_t wanted) {
  auto& chain = chains_[shard];
  auto staying = static_cast<std::size_t>(
      std::ranges::count_if(chain, [&](ServerId id) { return contains(eligible, id) && retiring_[shard] != id; }));
  if (chain.empty() || staying >= wanted) return false;
  ServerId best = kNobody;
  for (ServerId id : eligible) {
    if (!contains(chain, id) && (best == kNobody || load(id) < load(best))) best = id;
  }
  if (best == kNobody) return false;
  chain.push_back(best);
  return true;
}

bool Placement::shrink(std::uint32_t shard, const std::vector<ServerId>& eligible, std::size_t wanted) {
  auto& chain = chains_[shard];
  auto stays = [&](ServerId id) { return contains(eligible, id) && retiring_[shard] != id; };
  auto good = static_cast<std::size_t>(
      std::ranges::count_if(chain, [&](ServerId id) { return stays(id) && whole_[shard].contains(id); }));
  if (good == 0 || good < wanted) return false;
  std::size_t before = chain.size();
  std::erase_if(chain, [&](ServerId id) { return !stays(id); });
  std::erase_if(whole_[shard], [&](ServerId id) { return !contains(chain, id); });
  std::stable_partition(chain.begin(), chain.end(), [&](ServerId id) { return whole_[shard].contains(id); });
  retiring_[shard] = kNobody;
  return chain.size() != before;
}

// Moves shards, one from each server at a time, from who has most to who has least.
bool Placement::balance(const std::vector<ServerId>& eligible) {
  auto by_load = [&](ServerId a, ServerId b) { return load(a) < load(b); };
  ServerId most = *std::ranges::max_element(eligible, by_load), least = *std::ranges::min_element(eligible, by_load);
  if (load(most) < load(least) + 2) return false;
  for (std::uint32_t shard = 0; shard < chains_.size(); ++shard) {
    auto& chain = chains_[shard];
    if (retiring_[shard] != kNobody || !contains(chain, most) || contains(chain, least)) continue;
    retiring_[shard] = most;
    chain.push_back(least);
    return true;
  }
  return false;
}

// Heads do the work: where one server leads too many, another copy of one of its shards takes the lead.
bool Placement::balance_heads(const std::vector<ServerId>& eligible) {
  for (std::uint32_t shard = 0; shard < chains_.size(); ++shard) {
    auto& chain = chains_[shard];
    if (chain.size() < 2) continue;
    auto by_heads = [&](ServerId a, ServerId b) { return heads(a) < heads(b); };
    ServerId least = *std::ranges::min_element(chain, by_heads);
    if (heads(chain.front()) < heads(least) + 2 || !contains(eligible, least)) continue;
    std::erase(chain, least);
    chain.insert(chain.begin(), least);
    whole_[shard] = {least};  // the others get it from the new head
    return true;
  }
  return false;
}

bool Placement::settle(const std::vector<Candidate>& servers, std::size_t replicas) {
  if (chains_.empty()) return false;
  bool changed = bury(servers);
  std::vector<ServerId> eligible;
  for (auto& server : servers) {
    if (!server.leaving) eligible.push_back(server.id);
  }
  if (eligible.empty()) return changed;
  const std::size_t wanted = std::min(replicas, eligible.size());
  for (std::uint32_t shard = 0; shard < chains_.size(); ++shard) {
    changed = grow(shard, eligible, wanted) || changed;
    changed = shrink(shard, eligible, wanted) || changed;
  }
  // Only when all copies are whole: one thing after the other.
  bool calm = true;
  for (std::uint32_t shard = 0; shard < chains_.size(); ++shard) {
    calm = calm && whole_[shard].size() == chains_[shard].size() && retiring_[shard] == kNobody;
  }
  if (calm) changed = balance(eligible) || balance_heads(eligible) || changed;
  return changed;
}

}  // namespace trireme::ps
