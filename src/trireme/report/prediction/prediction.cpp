#include "trireme/report/prediction/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/base/median.h"
#include "trireme/cluster/profile/codec_costs.h"
#include "trireme/cluster/profile/profile_json.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/collective/cost/tuning.h"

namespace trireme::train {
namespace {

constexpr int kSimulated = 48;
constexpr const char* kSparse = "--sparse: how many rows a step touches is not simulated";

// By step 7 buckets were planned from measured times (grad/timings.h); caches and clocks of the processor settle over
// some more. The first steps of a short run are measured early, so that some are left to compare.
std::int64_t first_of(std::int64_t total) {
  constexpr std::int64_t kPlanned = 7, kMost = 50;
  return total < 4 * kPlanned ? total / 4 : std::clamp(total / 16, kPlanned, kMost);
}
std::int64_t from_of(std::int64_t total) {
  constexpr std::int64_t kFew = 16, kMany = 100;
  const auto first = first_of(total);
  return first + std::max<std::int64_t>(1, std::min((total - first) / 2, std::clamp(total / 8, kFew, kMany)));
}

struct Named {
  const char* name;
  double cluster::PredictedStep::*member;
};
constexpr std::array kParts{Named{"forward", &cluster::PredictedStep::forward_ms},
                            Named{"backward", &cluster::PredictedStep::backward_ms},
                            Named{"communication", &cluster::PredictedStep::communication_ms},
                            Named{"exposed", &cluster::PredictedStep::exposed_ms},
                            Named{"optimizer", &cluster::PredictedStep::optimizer_ms},
                            Named{"other", &cluster::PredictedStep::other_ms},
                            Named{"step", &cluster::PredictedStep::step_ms}};

// A step of the first worker, for that is what it measures: where workers go at their own pace others have their own.
cluster::PredictedStep in_ms(const cluster::Simulated& simulated, bool own_pace) {
  const auto& parts = simulated.breakdown_s;
  return {.step_ms = 1e3 * (own_pace && !simulated.step_ends.empty() ? parts.step() : simulated.step_s),
          .forward_ms = 1e3 * parts.forward,
          .backward_ms = 1e3 * parts.backward,
          .communication_ms = 1e3 * parts.communication,
          .exposed_ms = 1e3 * parts.exposed,
          .optimizer_ms = 1e3 * parts.optimizer,
          .other_ms = 1e3 * parts.other};
}

// Those that a run's rules can name, as they are set there; each of the others as it is by default.
std::vector<cluster::CodecProfile> codecs_of(const Config& config, const cluster::Profile& profile) {
  constexpr std::size_t kMost = 1 << 18;  // elements, about
  std::vector<cluster::CodecProfile> found;
  if (config.compress == "none" && config.compress_rule.empty()) return found;
  std::vector<compress::Tensor> tensors;
  std::size_t elements = 0;
  for (const auto& one : profile.gradients) {
    if (elements >= kMost) break;
    tensors.push_back({"", one.elements, std::max<std::size_t>(one.rows, 1), static_cast<int>(tensors.size())});
    elements += one.elements;
  }
  const auto gradient = cluster::like_gradient(sizeof(float) * elements);
  if (config.compress != "none") found.push_back(cluster::measure_codec(config.compress, gradient, tensors));
  for (const auto& kind : compress::codecs()) {
    const bool named = config.compress_rule.find(kind.name) != std::string::npos;
    const bool there = std::ranges::any_of(found, [&](const auto& one) { return one.name == kind.name; });
    if (named && !there) found.push_back(cluster::measure_codec(kind.name, gradient, tensors));
  }
  return found;
}

int servers_of(const Config& config) {
  return config.servers == "colocated" ? 0 : static_cast<int>(std::strtol(config.servers.c_str(), nullptr, 10));
}

cluster::Job job_of(const Config& config, const cluster::Profile& profile, int workers, const DataParallel* net,
                    bool in_backward) {
  cluster::Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse(config.strategy);
  job.compress = config.compress;
  job.compress_rules = config.compress_rule;
  job.bucket_plan = config.bucket_plan;
  job.algorithm = config.deterministic ? "auto" : config.algorithm;
  job.lanes = static_cast<int>(config.lanes);
  job.workers = workers;
  job.servers = servers_of(config);
  job.steps = kSimulated;
  job.seed = static_cast<std::uint64_t>(config.seed);
  job.own = true;
  if (in_backward && net) {
    job.turn = net->turn() == sync::Turn::in_line ? cluster::Job::Turn::in_line : cluster::Job::Turn::background;
  }
  return job;
}

// To ask servers and be answered: what is known of it are the steps that were measured, for nobody asks before the
// first. Found by halving: with it a simulated step waits for servers as long as those did.
double request_of(const cluster::Cluster& cluster, cluster::Job job, cluster::Profile profile, double exposed_s) {
  constexpr int kHalvings = 10;
  job.profile = &profile;
  double least = 0, most = 2 * exposed_s;
  for (int k = 0; k < kHalvings; ++k) {
    profile.request_s = (least + most) / 2;
    (cluster::simulate(cluster, job).breakdown_s.exposed < exposed_s ? least : most) = profile.request_s;
  }
  return (least + most) / 2;
}

}  // namespace

nlohmann::json to_json(const cluster::PredictedStep& step) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& part : kParts) parts[part.name] = step.*part.member;
  return {{"step_ms", step.step_ms}, {"breakdown_ms", parts}};
}

void Prediction::Sums::add(const StepOutcome& outcome, double optimizer_s, double whole_s) {
  ++steps;
  ms.step_ms += 1e3 * whole_s;
  ms.forward_ms += 1e3 * outcome.forward_s;
  ms.backward_ms += 1e3 * outcome.backward_s;
  ms.communication_ms += 1e3 * outcome.communication_s;
  ms.exposed_ms += 1e3 * outcome.exposed_s;
  ms.optimizer_ms += 1e3 * optimizer_s;
  ms.other_ms +=
      1e3 * std::max(0.0, whole_s - outcome.forward_s - outcome.backward_s - outcome.exposed_s - optimizer_s);
}

cluster::PredictedStep Prediction::Sums::mean() const {
  auto mean = ms;
  for (const auto& part : kParts) mean.*part.member /= static_cast<double>(std::max<std::int64_t>(1, steps));
  return mean;
}

Prediction::Prediction(const Config& config, Communicator& world, WorkerGroup& group, const sync::Strategy& strategy,
                       std::size_t gradient_bytes, std::int64_t total_steps, std::optional<Told> told)
    : config_(config),
      group_(group),
      lockstep_(!strategy.traits().own_pace),
      in_backward_(strategy.traits().in_backward),
      transport_(world.size() > 1 || group.size() == 1                 ? std::string(world.transport())
                 : config.transport == "tcp" || config.hosts != "none" ? "tcp"
                                                                       : "shm"),
      threads_(torch::get_num_threads()),
      first_(first_of(total_steps)),
      from_(from_of(total_steps)),
      by_another_(told.has_value() || config.sparse),
      told_(config.sparse ? Told{std::nullopt, kSparse} : std::move(told)) {
  if (!told_) exchange_ = measure_exchange(config, world, gradient_bytes);
}

void Prediction::step(const StepOutcome& outcome, double optimizer_s, double whole_s) {
  ++steps_;
  all_.add(outcome, optimizer_s, whole_s);
  if (steps_ > from_) return measured_.add(outcome, optimizer_s, whole_s);
  if (steps_ <= first_ || told_) return;
  const double other =
      whole_s - outcome.forward_s - outcome.backward_s - outcome.held_up_s - outcome.exposed_s - optimizer_s;
  samples_.add({outcome.forward_s, outcome.backward_s, optimizer_s, std::max(0.0, other)});
  before_.add(outcome, optimizer_s, whole_s);
  own_.push_back(outcome.own_s() + optimizer_s);
}

void Prediction::begin_again() {
  if (by_another_) return;
  told_.reset();
  steps_ = 0;
  samples_ = {};
  own_.clear();
  measured_ = before_ = all_ = {};
}

cluster::Profile Prediction::own_profile(DataParallel* net, double samples, const cluster::NodeClass& host) const {
  cluster::Profile profile;
  profile.file = "this run";
  profile.model = config_.model;
  profile.data = config_.data;
  profile.device = config_.device;
  profile.machine = machine_fingerprint();
  profile.batch = static_cast<int>(config_.batch * config_.accumulate);
  profile.threads = threads_;
  profile.beside = host.workers;
  profile.cores = host.cores;
  profile.samples = samples;
  samples_.fill(profile, net->gradients().ready());
  // Backward was measured while buckets travelled beside it.
  const bool beside = in_backward_ && net->turn() == sync::Turn::background;
  profile.slowdown = beside ? 0 : exchange_.theft;
  profile.pack_s_per_byte = exchange_.pack_s_per_byte;
  profile.codecs = codecs_of(config_, profile);
  return profile;
}

// What each worker's steps took over the first one's compute, where they may be asked; what --straggle does else.
void Prediction::slow_workers(cluster::Cluster& cluster) {
  const Straggle straggle(config_.straggle);
  const double typical = samples_.typical_s();
  if (auto one = straggler_of(straggle, typical, lockstep_)) cluster.stragglers.push_back(*one);
  if (!lockstep_) return;
  std::vector<double> own(static_cast<std::size_t>(group_.size()) + 1);
  own[static_cast<std::size_t>(group_.rank())] = median(own_);
  if (group_.rank() == 0) own.back() = typical;
  group_.sum(own);
  for (int rank = 0; rank < group_.size() && own.back() > 0; ++rank) {
    const double factor = own[static_cast<std::size_t>(rank)] / own.back();
    if (std::abs(factor - 1) < 0.02) continue;
    cluster::Straggler slow;
    slow.workers = {rank};
    slow.factor = factor;
    cluster.stragglers.push_back(slow);
  }
}

void Prediction::predict(DataParallel* net, double samples) {
  told_.emplace();
  auto cluster = cluster_here(config_, transport_, group_.size());
  slow_workers(cluster);  // all take part; the first one predicts
  if (group_.rank() != 0) return;
  try {
    if (!net) throw ConfigError("nothing was measured of its gradients");
    fit(cluster, config_.deterministic ? "auto" : config_.algorithm, exchange_);
    auto profile = own_profile(net, samples, cluster.nodes.front());
    const auto job = job_of(config_, profile, group_.size(), net, in_backward_);
    if (job.strategy.kind->needs_servers && group_.size() <= kMostFitted) {
      profile.request_s = request_of(cluster, job, profile, 1e-3 * before_.mean().exposed_ms);
    }
    const auto simulated = cluster::simulate(cluster, job);
    told_->step = in_ms(simulated, !lockstep_);
  } catch (const Error& error) {
    told_->why_not = error.what();
  }
}

std::string Prediction::line() const {
  const auto measured = (measured_.steps > 0 ? measured_ : all_).mean();
  if (told_ && told_->step && measured_.steps > 0) {
    const double predicted = told_->step->step_ms;
    return fmt::format("step: predicted {:.3g} ms, measured {:.3g} ms ({:+.1f} %)", predicted, measured.step_ms,
                       predicted > 0 ? 100 * (measured.step_ms / predicted - 1) : 0.0);
  }
  const auto why = told_ && !told_->why_not.empty() ? told_->why_not : "the run was too short";
  return fmt::format("step: measured {:.3g} ms, not predicted ({})", measured.step_ms, why);
}

void Prediction::add_to(nlohmann::json& summary) const {
  if (told_ && told_->step) summary["predicted"] = to_json(*told_->step);
  if (measured_.steps > 0) {
    summary["measured"] = to_json(measured_.mean());
    summary["measured"]["steps"] = measured_.steps;
  }
}

std::optional<cluster::Straggler> straggler_of(const Straggle& straggle, double compute_s, bool pauses) {
  cluster::Straggler slow;
  if (straggle.kind() == Straggle::Kind::persistent && !pauses) {
    slow.workers = {straggle.rank()};
    slow.factor = straggle.factor();
    return slow;
  }
  if (straggle.kind() != Straggle::Kind::random || compute_s <= 0) return std::nullopt;
  constexpr int kDraws = 1000;
  slow.kind = cluster::Straggler::Kind::residuals;
  slow.ratios.assign(kDraws, 1);
  const auto slowed = static_cast<std::ptrdiff_t>(straggle.probability() * kDraws + 0.5);
  std::fill_n(slow.ratios.begin(), slowed, 1 + straggle.pause_s() / compute_s);
  return slow;
}

}  // namespace trireme::train
