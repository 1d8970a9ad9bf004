// The list of hybrids: published ways to lay a model out over workers that no mesh alone describes. Krizhevsky's "one
// weird trick" (AlexNet's, hybrid.h) and DistBelief's replicas of pipelines round a parameter server.
#pragma once
#include <span>
#include <string_view>

namespace trireme::mesh {

struct HybridKind {
  std::string_view name;
  std::string_view summary;  // one line; empty: no hybrid at all
  // Workers share the data and the last layers: these gather the samples of all, and each computes its part of them.
  bool gathers_batch = false;
  // Replicas meet at a parameter server alone.
  bool at_servers = false;
  // What it takes where nothing was chosen; empty: what everybody takes.
  std::string_view strategy = {}, mesh = {};
};

// All of them; the first is none.
std::span<const HybridKind> hybrids();
// As in --hybrid. Throws ConfigError that lists the names.
const HybridKind& find_hybrid(std::string_view name);

}  // namespace trireme::mesh
