#include "trireme/cluster/planner/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "trireme/base/error.h"
#include "trireme/cluster/planner/memory_need.h"
#include "trireme/collective/schedule.h"
#include "trireme/compress/codecs.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/schedule.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cluster {
namespace {

constexpr int kMostStages = 64, kMostParts = 16;

std::vector<int> worker_counts(const Question& question, Candidates& out) {
  std::vector<int> counts = question.space.workers;
  const int all = question.cluster.workers();
  if (counts.empty()) {
    for (int count = 1; count < all; count *= 2) counts.push_back(count);
    counts.push_back(all);
  }
  for (int count : counts) {
    if (count < 1 || count > all)
      throw ConfigError(fmt::format("{} workers: {} has {}", count, question.cluster.file, all));
  }
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.back() > mesh::kMostTrainedWorkers) {
    std::erase_if(counts, [](int count) { return count > mesh::kMostTrainedWorkers; });
    out.left_out.push_back(
        {0, fmt::format("more than {} workers: one job of trireme train has no more", mesh::kMostTrainedWorkers)});
    if (question.space.workers.empty() && counts.back() < mesh::kMostTrainedWorkers)
      counts.push_back(mesh::kMostTrainedWorkers);
  }
  return counts;
}

std::vector<sync::Choice> strategies_of(const Question& question) {
  std::vector<sync::Choice> choices;
  for (const auto& text : question.space.strategies) choices.push_back(sync::Choice::parse(text));
  if (!choices.empty()) return choices;
  for (const auto& kind : sync::strategies()) choices.push_back(sync::Choice::parse(kind.name));
  return choices;
}

// As they are written on the command line: a codec with its defaults by its name alone.
std::vector<std::string> codecs_of(const Question& question) {
  std::vector<std::string> codecs = question.space.codecs;
  for (const auto& text : codecs) (void)compress::Choice::parse(text);
  if (!codecs.empty()) return codecs;
  for (const auto& kind : compress::codecs()) codecs.emplace_back(kind.name);
  return codecs;
}

bool is_none(const std::string& codec) { return compress::Choice::parse(codec).none(); }

// The same meshes that data parallelism is a special case of: all that have so many workers.
std::vector<mesh::MeshShape> shapes_of(const Question& question, int workers) {
  std::vector<mesh::MeshShape> shapes;
  const auto& layers = question.profile.layers;
  const bool splits = std::ranges::any_of(layers, &LayerProfile::splittable);
  for (int pipe = 1; pipe <= std::min({workers, static_cast<int>(layers.size()), kMostStages}); ++pipe) {
    if (workers % pipe != 0) continue;
    for (int tensor = 1; tensor <= (splits ? std::min(workers / pipe, kMostParts) : 1); ++tensor) {
      if (workers / pipe % tensor == 0) shapes.push_back({workers / pipe / tensor, pipe, tensor});
    }
  }
  return shapes;
}

// Candidates to save memory: by sharding, by recomputing, by both; each list in the order of what it costs.
std::vector<std::vector<mesh::Saving>> savings_of(const mesh::MeshShape& shape) {
  std::vector<std::vector<mesh::Saving>> lists(3);
  for (auto shard : {mesh::Saving::Shard::optimizer, mesh::Saving::Shard::gradients, mesh::Saving::Shard::parameters}) {
    if (shape.data > 1) lists[0].push_back({shard, 0});
  }
  for (int every : {1, 2, 4, 8}) lists[1].push_back({mesh::Saving::Shard::none, every});
  for (const auto& recomputed : lists[1]) {
    for (const auto& sharded : lists[0]) lists[2].push_back({sharded.shard, recomputed.recompute_every});
  }
  return lists;
}

class Listing {
 public:
  explicit Listing(const Question& question) : question_(question) {}

  Candidates list() {
    const auto strategies = strategies_of(question_);
    const auto codecs = codecs_of(question_);
    for (int workers : worker_counts(question_, out_)) {
      for (const auto& strategy : strategies) {
        for (const auto& codec : codecs) add(workers, strategy, codec);
      }
      if (question_.space.meshes && !question_.profile.layers.empty()) add_meshes(workers, strategies, codecs);
    }
    return std::move(out_);
  }

 private:
  void leave_out(const Candidate& candidate, const std::string& why) {
    const std::size_t plans = list_variants(question_, candidate).size();
    auto known = std::ranges::find(out_.left_out, why, &LeftOut::why);
    if (known == out_.left_out.end()) known = out_.left_out.insert(known, {0, why});
    known->plans += plans;
  }

  const sync::StrategyTraits& traits(const sync::Choice& strategy) {
    auto [known, fresh] = traits_.try_emplace(strategy.text());
    if (fresh) known->second = sync::traits_of(strategy);
    return known->second;
  }

  void add(int workers, const sync::Choice& strategy, const std::string& codec) {
    Candidate candidate{workers, strategy, codec, traits(strategy)};
    const bool one_memory = candidate.traits.one_memory;
    sync::Combination together{
        .strategy = strategy.text(), .compress = codec, .launch = one_memory ? "threads" : "processes"};
    if (workers == 1 && !is_plain(strategy, codec)) {
      return leave_out(candidate, "one worker exchanges nothing: how it would does not matter");
    }
    if (sync::refused(together))
      return leave_out(candidate, "codecs that a strategy cannot send: trireme train refuses them");
    if (one_memory && !question_.cluster.shares_memory()) {
      return leave_out(candidate,
                       fmt::format("{} on several nodes: its workers share their memory", strategy.kind->name));
    }
    if (!candidate.traits.exchanges && question_.objective == Objective::step && question_.space.strategies.empty()) {
      return leave_out(candidate, fmt::format("{}: it exchanges nothing while it trains, so that its step says nothing",
                                              strategy.kind->name));
    }
    if (!fits(candidate)) return too_large(candidate);
    out_.candidates.push_back(std::move(candidate));
  }

  static bool is_plain(const sync::Choice& strategy, const std::string& codec) {
    return strategy.traits().in_backward && is_none(codec);
  }

  void add_meshes(int workers, const std::vector<sync::Choice>& strategies, const std::vector<std::string>& codecs) {
    for (const auto& shape : shapes_of(question_, workers)) {
      for (const auto& kind : pipelines::kinds()) {
        if (shape.pipe == 1 && kind.name != Candidate{}.schedule) continue;  // one stage takes no turns
        if (kind.in_chunks && static_cast<std::size_t>(2 * shape.pipe) > question_.profile.layers.size()) continue;
        for (int micro = shape.pipe == 1 ? 1 : 2; micro <= question_.profile.batch; micro *= 2) {
          for (const auto& strategy : strategies) {
            for (const auto& codec : codecs) {
              if (shape.data > 1 || is_plain(strategy, codec)) add_mesh(workers, shape, kind, micro, strategy, codec);
            }
          }
          if (shape.pipe == 1) break;
        }
      }
    }
  }

  // What saves memory costs time: it counts where nothing fits without, and then the least of each kind that does.
  void add_mesh(int workers, const mesh::MeshShape& shape, const pipelines::PipelineKind& kind, int micro,
                const sync::Choice& strategy, const std::string& codec) {
    Candidate candidate{workers, strategy, codec, traits(strategy)};
    candidate.on_mesh = true;
    candidate.mesh = shape;
    candidate.micro_batches = micro;
    candidate.schedule = std::string(kind.name);
    const bool replicas_only = shape.data == shape.size();
    const std::size_t before = out_.candidates.size();
    if (!replicas_only) add_saving(candidate, {});
    if (out_.candidates.size() > before ||
        (replicas_only && fits(Candidate{workers, strategy, codec, candidate.traits}))) {
      return leave_out(candidate, "sharding and recomputation where memory holds all: they only take time");
    }
    for (const auto& list : savings_of(shape)) {
      for (const auto& saving : list) {
        if (add_saving(candidate, saving)) break;
      }
    }
  }

  bool add_saving(Candidate candidate, const mesh::Saving& saving) {
    candidate.saving = saving;
    const auto& kind = pipelines::find_kind(candidate.schedule);
    if (!kind.synchronous) {
      leave_out(candidate, fmt::format("{} pipelines: what their late weights cost is not known", kind.name));
    } else if (const auto& why = refused_on_mesh(candidate); !why.empty()) {
      leave_out(candidate, why);
    } else if (!candidate.traits.exchanges && question_.objective == Objective::step &&
               question_.space.strategies.empty()) {
      leave_out(candidate, fmt::format("{}: it exchanges nothing while it trains, so that its step says nothing",
                                       candidate.strategy.kind->name));
    } else if (!fits(candidate)) {
      too_large(candidate);
    } else {
      out_.candidates.push_back(std::move(candidate));
      return true;
    }
    return false;
  }

  // By the rules of trireme train; asked once for each strategy, codec, schedule and way to shard.
  const std::string& refused_on_mesh(const Candidate& candidate) {
    sync::Combination together{.strategy = candidate.strategy.text(),
                               .compress = candidate.compress,
                               .on_mesh = true,
                               .pipeline = candidate.schedule};
    together.shard = mesh::kShardKindNames[static_cast<std::size_t>(candidate.saving.shard)];
    auto [known, fresh] =
        refused_.try_emplace({together.strategy, together.compress, together.pipeline, together.shard});
    if (fresh && sync::refused(together)) {
      together.shard = "none";
      known->second = sync::refused(together)
                          ? "strategies and codecs that trireme train refuses on a mesh"
                          : "sharding with other than plain all-reduce, or with pipelines that split "
                            "backward: trireme train refuses it";
    }
    return known->second;
  }

  bool fits(const Candidate& candidate) const {
    const std::uint64_t there = memory_there(question_, candidate.workers);
    return there == 0 || memory_needed(question_, candidate) <= there;
  }
  void too_large(const Candidate& candidate) {
    const std::uint64_t needed = memory_needed(question_, candidate);
    out_.least_bytes = out_.least_bytes == 0 ? needed : std::min(out_.least_bytes, needed);
    leave_out(candidate, std::string(kTooLarge));
  }

  const Question& question_;
  Candidates out_;
  std::map<std::string, sync::StrategyTraits> traits_;
  std::map<std::array<std::string, 4>, std::string> refused_;
};

}  // namespace

Candidates list_candidates(const Question& question) { return Listing(question).list(); }

std::vector<Variant> list_variants(const Question& question, const Candidate& candidate) {
  if (candidate.on_mesh || candidate.workers == 1 || !candidate.traits.collective) return {Variant{}};
  std::vector<std::string> algorithms = question.space.algorithms, plans = question.space.bucket_plans;
  std::vector<int> lanes = question.space.lanes;
  if (algorithms.empty()) {
    algorithms.push_back("auto");
    for (const Algorithm* one : algorithms_for(Collective::all_reduce)) {
      if (!one->shared || question.cluster.shares_memory()) algorithms.emplace_back(one->name);
    }
  }
  if (plans.empty()) {
    plans.push_back("optimal");
    for (const auto& plan : sync::bucket_plans()) {
      if (plan.name != "optimal") plans.push_back(plan.name == "cap" ? "cap:25" : std::string(plan.name));
    }
  }
  if (lanes.empty()) lanes = {1, 2, 4};
  if (!candidate.traits.buckets) {  // one vector at a time
    plans.resize(1);
    lanes.resize(1);
  }
  std::vector<Variant> variants;
  for (const auto& algorithm : algorithms) {
    for (const auto& plan : plans) {
      for (int lane : lanes) variants.push_back({algorithm, plan, lane});
    }
  }
  std::ranges::stable_partition(variants, &Variant::plain);
  return variants;
}

Job job_of(const Question& question, const Candidate& candidate, const Variant& variant) {
  Job job;
  job.profile = &question.profile;
  job.strategy = candidate.strategy;
  job.compress = candidate.compress;
  job.bucket_plan = variant.bucket_plan;
  job.algorithm = variant.algorithm;
  job.lanes = variant.lanes;
  job.workers = candidate.workers;
  job.steps = std::clamp(question.steps * 256 / candidate.workers, std::min(3, question.steps), question.steps);
  job.seed = question.seed;
  job.mesh = candidate.on_mesh ? candidate.mesh : mesh::MeshShape{};
  job.micro_batches = candidate.micro_batches;
  job.saving = candidate.saving;
  job.schedule = candidate.schedule;
  return job;
}

Settings settings_of(const Question& question, const Candidate& candidate, const Variant& variant) {
  const Profile& profile = question.profile;
  Settings settings{{"model.name", profile.model}};
  if (!profile.data.empty()) settings.emplace_back("data.name", profile.data);
  settings.emplace_back("train.batch", std::to_string(profile.batch));
  settings.emplace_back("run.workers", std::to_string(candidate.workers));
  settings.emplace_back("run.threads", std::to_string(profile.threads));
  if (candidate.traits.one_memory) settings.emplace_back("run.launch", "threads");
  settings.emplace_back("sync.strategy", candidate.strategy.text());
  settings.emplace_back("sync.compress", candidate.compress);
  if (candidate.on_mesh) {
    settings.emplace_back("parallel.mesh", to_text(candidate.mesh));
    settings.emplace_back("parallel.pipeline", candidate.schedule);
    settings.emplace_back("parallel.micro_batches", std::to_string(candidate.micro_batches));
    settings.emplace_back("parallel.shard", mesh::kShardKindNames[static_cast<std::size_t>(candidate.saving.shard)]);
    const int every = candidate.saving.recompute_every;
    settings.emplace_back("parallel.recompute", every > 0 ? fmt::format("every:{}", every) : "none");
    return settings;
  }
  settings.emplace_back("exchange.bucket_plan", variant.bucket_plan);
  settings.emplace_back("exchange.algorithm", variant.algorithm);
  settings.emplace_back("exchange.lanes", std::to_string(variant.lanes));
  return settings;
}

}  // namespace trireme::cluster
