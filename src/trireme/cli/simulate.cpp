// `trireme simulate`: what a training job would do on a cluster that need not be there.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/command.h"
#include "trireme/cli/output_file.h"
#include "trireme/cli/refuse.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/cluster/sim/job/simulate_json.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/compress/rules.h"
#include "trireme/mesh/hybrids.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/schedule.h"

namespace trireme::cli {
namespace {

struct SimulateOptions {
  std::string cluster, profile, strategy = "allreduce", exchange = "auto", mesh, hybrid = "none", trace, out;
  std::string servers = "0", lanes = "1", seed = "1";
  cluster::Job job;
  int micro_batches = 0;
  bool json = false, still = false;
};

cluster::Job job_of(const SimulateOptions& options, const cluster::Profile& profile) {
  cluster::Job job = options.job;
  job.profile = &profile;
  job.servers = static_cast<int>(parse_integer(options.servers, "--servers", 0, 4096));
  job.lanes = static_cast<int>(parse_integer(options.lanes, "--lanes", 1, kMostLanes));
  job.seed = static_cast<std::uint64_t>(parse_integer(options.seed, "--seed", 0, std::int64_t{1} << 53));
  job.strategy = sync::Choice::parse(options.strategy);
  job.trace = !options.trace.empty();
  job.noise = !options.still;
  if (options.exchange != "auto") {
    job.turn = options.exchange == "inline" ? cluster::Job::Turn::in_line : cluster::Job::Turn::background;
  }
  const auto& hybrid = mesh::find_hybrid(options.hybrid);
  job.hybrid = hybrid.gathers_batch;
  const std::string mesh = options.mesh.empty() ? std::string(hybrid.mesh) : options.mesh;
  if (!hybrid.strategy.empty() && options.strategy == SimulateOptions().strategy) {
    job.strategy = sync::Choice::parse(hybrid.strategy);
  }
  if (!mesh.empty()) {
    job.mesh = mesh::parse_mesh(mesh);
    if (job.workers == 0) job.workers = job.mesh.size();
  }
  const int usual = job.mesh.pipe > 1 ? mesh::kMicroBatches : 1;
  job.micro_batches = options.micro_batches > 0 ? options.micro_batches : usual;
  return job;
}

std::vector<std::string> hybrid_names() {
  std::vector<std::string> names;
  for (const auto& one : mesh::hybrids()) names.emplace_back(one.name);
  return names;
}

// "alexnet: convolutions replicated, the rest split; …"
std::string hybrid_help() {
  std::string text;
  for (const auto& one : mesh::hybrids()) {
    if (!one.summary.empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.name, one.summary);
  }
  return text;
}

// What the job does nothing with.
void refuse_idle(const CLI::App& command, const SimulateOptions& options, const cluster::Job& job) {
  const auto& strategy = *job.strategy.kind;
  if (!strategy.needs_servers) {
    refuse_given(command, {"--servers"}, fmt::format("{} has no servers; leave it out", strategy.name));
  }
  const bool on_mesh = !job.hybrid && (!options.mesh.empty() || !mesh::find_hybrid(options.hybrid).mesh.empty());
  if (on_mesh) {
    refuse_given(command, {"--servers"}, "on a mesh there is one with each worker; leave it out");
    pipelines::find_kind(job.schedule);
  } else {
    refuse_given(command, {"--pipeline", "--micro-batches"}, "it is for --mesh and --hybrid distbelief");
  }
}

void check_rules(const std::string& rules, const cluster::Profile& profile) {
  std::vector<std::string> names;
  for (const auto& gradient : profile.gradients) names.push_back(gradient.name);
  compress::Rules("none", rules).check_patterns(names, profile.file);
}

std::string ms(double seconds) { return fmt::format("{:.3f} ms", 1e3 * seconds); }

void print_breakdown(const cluster::Simulated& result) {
  const auto& mean = result.breakdown_s;
  fmt::print("  forward {}, backward {}, exposed {}, optimizer {}, other {}\n", ms(mean.forward), ms(mean.backward),
             ms(mean.exposed), ms(mean.optimizer), ms(mean.other));
  const auto& parts = result.exchange_s;
  if (mean.communication <= 0) return;
  fmt::print("  communication {}{}: latency {}, bandwidth {}, queueing {}, waiting {}, coding {}\n",
             ms(mean.communication), result.buckets > 0 ? fmt::format(" in {} buckets", result.buckets) : "",
             ms(parts.latency), ms(parts.bandwidth), ms(parts.queueing), ms(parts.waiting), ms(parts.coding));
}

void print_workers(const cluster::Simulated& result) {
  if (result.workers.size() < 2) return;
  auto waits = [](const cluster::WorkerTimes& worker) {
    return worker.wait_s / std::max(1.0, static_cast<double>(worker.steps));
  };
  const auto [least, most] =
      std::ranges::minmax_element(result.workers, {}, [&](const auto& worker) { return waits(worker); });
  fmt::print("  {} workers wait {} (rank {}) to {} (rank {}) a step\n", result.workers.size(), ms(waits(*least)),
             least - result.workers.begin(), ms(waits(*most)), most - result.workers.begin());
  if (result.stale.empty()) return;
  double sum = 0, count = 0;
  for (const auto& [by, steps] : result.stale) {
    sum += static_cast<double>(by * steps);
    count += static_cast<double>(steps);
  }
  fmt::print("  staleness: mean {:.2f}, most {}\n", sum / std::max(1.0, count), result.stale.rbegin()->first);
}

void print_text(const cluster::Simulated& result) {
  const auto steps = std::max<std::size_t>(1, result.step_ends.size());
  fmt::print("{}, compression {}\n", result.strategy, result.compress);
  fmt::print("step {}, {:.1f} samples/s ({} steps simulated, {})\n", ms(result.step_s), result.samples_per_s, steps,
             name(result.tier));
  print_breakdown(result);
  print_workers(result);
  fmt::print("  {:.3f} MB sent a step by all workers\n",
             1e-6 * static_cast<double>(result.bytes_sent) / static_cast<double>(steps));
  if (result.link >= 0) {
    fmt::print("  busiest link: {}, {:.3f} MB, {:.1f} % of its time\n", result.busiest,
               1e-6 * static_cast<double>(result.traffic.bytes[static_cast<std::size_t>(result.link)]),
               100 * result.utilisation);
  }
  fmt::print("why: {}\n", result.why);
}

void simulate(const CLI::App& command, const SimulateOptions& options) {
  if (command.count("--trace") > 0) check_output(options.trace, "--trace");
  if (command.count("--out") > 0) check_output(options.out, "--out");
  const auto cluster = cluster::load_cluster(options.cluster);
  const auto profile = cluster::load_profile(options.profile);
  const auto job = job_of(options, profile);
  refuse_idle(command, options, job);
  check_rules(job.compress_rules, profile);
  const auto result = cluster::simulate(cluster, job);
  auto predicted = cluster::to_json(result);
  predicted["cluster"] = options.cluster;
  predicted["profile"] = options.profile;
  predicted["model"] = profile.model;
  const auto text = predicted.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (!options.trace.empty()) {
    std::string trace;
    trace_text(result.trace, [&](std::string_view part) { trace += part; });
    write_output(options.trace, "--trace", trace);
  }
  if (!options.out.empty()) write_output(options.out, "--out", text + "\n");
  options.json ? fmt::print("{}\n", text) : print_text(result);
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto options = std::make_shared<SimulateOptions>();
  auto& job = options->job;
  auto* command = app.add_subcommand("simulate", "What a training job would do on a cluster, step by step");
  command->add_option("--cluster", options->cluster, "cluster.toml; `trireme tune --cluster` writes this machine's")
      ->required();
  command->add_option("--profile", options->profile, "profile.json of `trireme profile`")->required();
  command->add_option("--strategy", options->strategy, "As train's: allreduce, local-sgd:H=8, …")
      ->capture_default_str();
  command->add_option("--compress", job.compress, "As train's: none, fp16, topk:0.01, …")->capture_default_str();
  command->add_option("--compress-rule", job.compress_rules, "As train's: \"*.bias=none,…\"");
  command->add_option("--bucket-plan", job.bucket_plan, "cap:25, tensor, one, mgwfbp or optimal")
      ->capture_default_str();
  command->add_option("--algorithm", job.algorithm, "Of collectives; auto: what the runtime picks")
      ->capture_default_str();
  command->add_option("--exchange", options->exchange, "Buckets in the background, or inline; auto: as train would")
      ->check(CLI::IsMember({"auto", "background", "inline"}))
      ->capture_default_str();
  command->add_option("-n,--workers,--ranks,--nproc-per-node", job.workers, "The cluster's first so many; 0: all")
      ->capture_default_str();
  command->add_option("--servers", options->servers, "ps-*: 0 for one with each worker")->capture_default_str();
  command->add_option("--lanes", options->lanes, "Exchanges under way at once")->capture_default_str();
  command->add_option("--mesh", options->mesh, "data=D,pipe=P,tensor=T");
  command->add_option("--hybrid", options->hybrid, hybrid_help())
      ->check(CLI::IsMember(hybrid_names()))
      ->capture_default_str();
  command
      ->add_option("--micro-batches", options->micro_batches,
                   "Of a step, on a mesh; 0: as train, 8 with stages, else 1")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--pipeline", job.schedule, "Pipeline schedule, on a mesh")->capture_default_str();
  command->add_option("--steps", job.steps, "To simulate, of each worker")->capture_default_str();
  command->add_option("--seed", options->seed, "Of jitter, stragglers and random graphs")->capture_default_str();
  command->add_flag("--no-noise", options->still, "Every step takes its median; only those are slow who always are");
  command->add_option("--trace", options->trace, "Write this trace.json, for ui.perfetto.dev");
  command->add_option("-o,--out", options->out, "Write this predicted.json, for `trireme diff`");
  command->add_flag("--json", options->json, "One object, as in predicted.json");
  command->callback([options, command] { simulate(*command, *options); });
}

}  // namespace trireme::cli
