// `trireme plan`: the best ways to train a model on a cluster, ranked, and plan.json for `trireme train --plan`.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/split.h"
#include "trireme/cli/bench/rank_group.h"
#include "trireme/cli/command.h"
#include "trireme/cli/output_file.h"
#include "trireme/cli/plan_table.h"
#include "trireme/cli/program.h"
#include "trireme/cli/terminal.h"
#include "trireme/cli/torch_commands.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/cluster/planner/search.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/compress/codecs.h"
#include "trireme/sync/strategies.h"

namespace trireme::cli {
namespace {

struct PlanOptions {
  std::string model, profile, cluster, objective = "step", memory, workers, lanes, out;
  std::string strategies, codecs, algorithms, bucket_plans;
  std::string top = "10", most = "1000", steps = "20", epochs = "4", seed = "1";
  bool no_mesh = false, exhaustive = false, json = false, quiet = false;
};

// "a:x=1,y=2,b" is "a:x=1,y=2" and "b": a comma ends a choice where the name of another follows.
template <typename Kind>
std::vector<std::string> split_choices(const std::string& text, const std::vector<Kind>& kinds) {
  std::vector<std::string> choices;
  for (const auto& part : words_of(text)) {
    const auto name = part.substr(0, part.find(':'));
    const bool known = std::ranges::any_of(kinds, [&](const Kind& kind) { return kind.name == name; });
    if (known || choices.empty() || part.find('=') == std::string::npos) {
      choices.push_back(part);
    } else {
      choices.back() += "," + part;
    }
  }
  return choices;
}

// A profile measured by `trireme profile`, in a file that goes away.
class Measured {
 public:
  Measured(const PlanOptions& options, const std::vector<std::string>& flags, const cluster::Cluster& cluster) {
    const int cores = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    std::vector<std::string> command{
        "profile", "--model", options.model, "--workers", std::to_string(std::min(cluster.nodes[0].workers, cores)),
        "-o",      path()};
    command.insert(command.end(), flags.begin(), flags.end());
    if (const int code = run_torch(command); code != 0) throw Exit{code};
  }
  std::string path() const { return folder_.path() + "/profile.json"; }

 private:
  bench::TemporaryFolder folder_;  // goes too where measuring fails and there is no Measured
};

cluster::Question question_of(const PlanOptions& options) {
  cluster::Question question;
  question.objective = cluster::parse_objective(options.objective);
  question.space.strategies = split_choices(options.strategies, sync::strategies());
  question.space.codecs = split_choices(options.codecs, compress::codecs());
  question.space.algorithms = words_of(options.algorithms);
  question.space.bucket_plans = words_of(options.bucket_plans);
  if (!options.workers.empty()) question.space.workers = parse_ranks(options.workers, "--workers");
  if (!options.lanes.empty()) question.space.lanes = parse_ranks(options.lanes, "--lanes");
  for (int lanes : question.space.lanes) {
    if (lanes > kMostLanes) throw ConfigError(fmt::format("--lanes: {} is above {}", lanes, kMostLanes));
  }
  question.space.meshes = !options.no_mesh;
  if (!options.memory.empty()) {
    question.memory_bytes = parse_size(options.memory, "--memory");
    if (question.memory_bytes == 0) throw ConfigError("--memory: 0 holds no model; leave it out for the cluster's");
  }
  question.top = static_cast<int>(parse_integer(options.top, "--top", 1, 10000));
  question.most = static_cast<int>(parse_integer(options.most, "--most", 1, 1000000));
  question.steps = static_cast<int>(parse_integer(options.steps, "--steps", 1, 10000));
  question.seed = static_cast<std::uint64_t>(parse_integer(options.seed, "--seed", 0, std::int64_t{1} << 53));
  question.epochs = parse_number(options.epochs, "--epochs");
  if (!(question.epochs > 0)) throw ConfigError(fmt::format("--epochs: {} is not above 0", options.epochs));
  question.exhaustive = options.exhaustive;
  return question;
}

void load_profile(const CLI::App& command, const PlanOptions& options, cluster::Question& question) {
  if (options.profile.empty() == options.model.empty()) {
    throw ConfigError("plan needs either --profile FILE or --model NAME, which is profiled here first");
  }
  if (!options.profile.empty()) {
    question.profile = cluster::load_profile(options.profile);
    return;
  }
  const Measured measured(options, command.remaining(), question.cluster);
  question.profile = cluster::load_profile(measured.path());
}

cluster::Progress progress_of(const PlanOptions& options) {
  if (options.json || options.quiet || isatty(STDERR_FILENO) != 1) return {};
  return [](std::size_t judged, std::size_t of) {
    if (judged % 10 == 1) fmt::print(stderr, "\r\x1b[Ksimulated {} of at most {} plans", judged, of);
  };
}

void save(const PlanOptions& options, const cluster::Question& question, const cluster::Found& found) {
  cluster::PlanFile file;
  file.objective = std::string(cluster::name(question.objective));
  file.model = question.profile.model;
  file.profile = options.profile;
  file.cluster = options.cluster;
  file.chosen = found.options.front();
  file.prediction = found.prediction;
  file.alternatives.assign(found.options.begin() + 1, found.options.end());
  cluster::save_plan(file, options.out);
}

void run(const CLI::App& command, const PlanOptions& options) {
  if (const auto flags = command.remaining(); options.model.empty() && !flags.empty()) {
    throw ConfigError(no_such_flag(command, flags.front()) + "; flags of trireme profile go with --model");
  }
  auto question = question_of(options);
  if (!options.out.empty()) check_output(options.out, "--output");
  question.cluster = cluster::load_cluster(options.cluster);
  load_profile(command, options, question);
  const auto progress = progress_of(options);
  const auto found = cluster::search(question, progress);
  if (progress) fmt::print(stderr, "\r\x1b[K");
  if (!options.out.empty()) save(options, question, found);
  if (options.json) {
    fmt::print("{}\n", plan_json(found, question.objective).dump());
  } else if (!options.quiet) {
    fmt::print("{}", plan_table(found, question.objective, standard_output().width));
    if (!options.out.empty()) fmt::print("written to {0}; run it with: trireme train --plan {0}\n", options.out);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "The best ways to train a model on a cluster");
  command->footer("example: trireme plan --profile profile.json --cluster cluster.toml -o plan.json");
  command->add_option("--cluster", options->cluster, "cluster.toml; see docs/clusters.md")->required();
  command->add_option("--profile", options->profile, "profile.json of trireme profile");
  command->add_option("--model", options->model,
                      "Instead: profile this model here first; other options of trireme profile may follow");
  command->add_option("--objective", options->objective,
                      "step: samples a second; accuracy: time until as good; cost: money until then (default step)");
  command->add_option("--memory", options->memory, "Of a worker: 2G (default what the cluster says)");
  command->add_option("-n,--workers,--ranks,--nproc-per-node", options->workers,
                      "How many may be used: 8 or 2,4,8 (default 1, 2, 4, … and all)");
  command->add_option("--strategies", options->strategies, "Only these: allreduce,local-sgd:H=4 (default all)");
  command->add_option("--codecs", options->codecs, "Only these: none,topk:0.01 (default all)");
  command->add_option("--algorithms", options->algorithms, "Only these of all-reduce (default auto and all)");
  command->add_option("--bucket-plans", options->bucket_plans, "Only these (default all)");
  command->add_option("--lanes", options->lanes, "Only these (default 1,2,4)");
  command->add_flag("--no-mesh", options->no_mesh, "No pipelines, tensor parallelism, sharding and recomputation");
  command->add_option("--top", options->top, "Rows (default 10)");
  command->add_option("--most", options->most, "Plans to simulate at most (default 1000)");
  command->add_option("--steps", options->steps, "Of each simulation (default 20)");
  command->add_option("--epochs", options->epochs, "That small batches would need, for accuracy and cost (default 4)");
  command->add_option("--seed", options->seed, "Of what is drawn (default 1)");
  command->add_flag("--exhaustive", options->exhaustive, "Simulate what bounds and closed forms rule out, too");
  command->add_option("-o,--output", options->out, "Write plan.json there");
  command->add_flag("--json", options->json, "One object");
  command->add_flag("--quiet", options->quiet, "Print nothing");
  command->allow_extras();
  command->callback([options, command] { run(*command, *options); });
}

}  // namespace trireme::cli
