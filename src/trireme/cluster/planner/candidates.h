// The space of a search, listed. Private to the search.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/planner/search.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/mesh/choice/mesh_choice.h"
#include "trireme/sync/compatibility.h"

namespace trireme::cluster {

// What changes what is learnt, or where: the variants of one way differ only in how its exchange is carried out.
struct Candidate {
  int workers = 1;
  sync::Choice strategy;
  std::string compress = "none";
  sync::StrategyTraits traits;
  // On a mesh, or sharded, or recomputed.
  bool on_mesh = false;
  mesh::MeshShape mesh;
  int micro_batches = 1;
  mesh::Saving saving;
  std::string schedule = "1f1b";
};

struct Variant {
  std::string algorithm = "auto", bucket_plan = "optimal";
  int lanes = 1;
  bool plain() const { return algorithm == "auto" && bucket_plan == "optimal" && lanes == 1; }
  bool operator==(const Variant&) const = default;
};

struct Candidates {
  std::vector<Candidate> candidates;
  std::vector<LeftOut> left_out;  // counted in plans, with every variant
  std::uint64_t least_bytes = 0;  // of those that are too large
};
inline constexpr std::string_view kTooLarge = "more memory than a worker has";
Candidates list_candidates(const Question& question);

// All that there are of a way, the plain one first.
std::vector<Variant> list_variants(const Question& question, const Candidate& candidate);

Job job_of(const Question& question, const Candidate& candidate, const Variant& variant);
// The keys of train's configuration that make it.
Settings settings_of(const Question& question, const Candidate& candidate, const Variant& variant);

}  // namespace trireme::cluster
