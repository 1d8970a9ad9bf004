#include "trireme/cli/torch/train_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/compress/codecs.h"
#include "trireme/grad/autocast.h"
#include "trireme/mesh/mesh_shape.h"
#include "trireme/mesh/schedule.h"
#include "trireme/models/model.h"
#include "trireme/optim/optimizers.h"
#include "trireme/sync/strategies.h"
#include "trireme/train/config/idle_settings.h"
#include "trireme/train/objective/objective.h"

namespace trireme::cli {
namespace {

// One section of --help per part of the keys.
const char* group_of(std::string_view key) {
  if (key.starts_with("model.") || key.starts_with("data.")) return "Model and data";
  if (key.starts_with("train.")) return "Training";
  if (key.starts_with("sync.")) return "How workers synchronize";
  if (key.starts_with("parallel.")) return "Model and pipeline parallelism";
  if (key.starts_with("exchange.")) return "Exchange of gradients";
  if (key.starts_with("run.")) return "Workers";
  return "What is written";
}

template <typename Kinds>
std::string names_of(const Kinds& kinds) {
  std::vector<std::string_view> names;
  for (const auto& kind : kinds) names.push_back(kind.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The names of a closed set that a text ends before: "one of".
std::string choices_of(std::string_view key) {
  if (key == "model.name") return names_of(models::models());
  if (key == "train.loss") return names_of(train::losses());
  if (key == "train.metric") return names_of(train::metrics());
  if (key == "train.optimizer") return names_of(optim::optimizers());
  if (key == "sync.strategy") return names_of(sync::strategies());
  if (key == "sync.compress") return names_of(compress::codecs());
  if (key == "parallel.pipeline") return names_of(pipelines::kinds());
  return {};
}

// With the default, unless the text says what 0 means.
std::string help_of(const train::Field& field, const train::Config& defaults) {
  std::string value = train::value_text(defaults, field), help(field.help);
  if (const auto choices = choices_of(field.key); !choices.empty()) help = fmt::format("{}: {}", help, choices);
  const bool said = value.empty() || value == "false" || (value == "0" && help.ends_with(')'));
  return said ? help : fmt::format("{} ({})", help, value);
}

using Given = std::vector<std::pair<std::string, std::string>>;  // key and text

// What was given for a key must mean the same as what the plan says.
void check_against(const cluster::PlanFile& plan, const train::Field& field, const std::string& planned,
                   const Given& given) {
  for (const auto& [key, text] : given) {
    if (key.starts_with("model.args.") || train::find_field(key).key != field.key) continue;
    train::Config ours, theirs;
    train::set(ours, field.key, text);
    train::set(theirs, field.key, planned);
    if (train::value_text(ours, field) == train::value_text(theirs, field)) continue;
    throw ConfigError(fmt::format("{} {}: {} says {}; leave out {} or --plan", field.flag, text, plan.file,
                                  planned.empty() ? "none" : planned, field.flag));
  }
}

void set_by_plan(train::Config& config, const cluster::PlanFile& plan, const Given& given) {
  for (const auto& [key, text] : plan.chosen.settings) {
    try {
      train::set(config, key, text);
    } catch (const ConfigError& error) {
      throw DataError(fmt::format("{}: settings.{}: {}", plan.file, key, error.what()));
    }
    if (!key.starts_with("model.args.")) check_against(plan, train::find_field(key), text, given);
  }
}

}  // namespace

train::Config& default_config() {
  static train::Config config;
  return config;
}

std::shared_ptr<TrainFlags> add_train_flags(CLI::App& command) {
  auto flags = std::make_shared<TrainFlags>();
  const auto& defaults = default_config();
  for (const auto& field : train::fields()) {
    std::string key(field.key), names(field.flag);
    if (key == "train.target") names = "--target,--target-accuracy";
    if (key == "run.workers") names = "-n,--nproc-per-node,--ranks,--workers";
    auto note = [flags, key](const std::string& text) { flags->given.emplace_back(key, text); };
    auto help = help_of(field, defaults);
    if (std::holds_alternative<bool train::Config::*>(field.member)) {
      command
          .add_flag_callback(
              names, [note] { note("true"); }, help)
          ->group(group_of(field.key));
    } else {
      command.add_option_function<std::string>(names, note, help)
          ->type_name("")
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
          ->group(group_of(field.key));
    }
  }
  command.add_option("--model-arg", flags->model_args, "NAME=VALUE, an argument of the model; may be repeated")
      ->type_name("")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Model and data");
  command.add_option("--config", flags->config_file, "settings from a file, TOML or JSON; flags win over it")
      ->type_name("FILE");
  command.add_option("--set", flags->settings, "KEY=VALUE, any setting by its name in --print-config; may be repeated")
      ->type_name("")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return flags;
}

std::pair<std::string, std::string> split_setting(std::string_view flag, std::string_view text) {
  auto equals = text.find('=');
  if (equals == text.npos || equals == 0) {
    throw ConfigError(fmt::format("{}: '{}' is not NAME=VALUE", flag, text));
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Given all_given(const TrainFlags& flags) {
  auto given = flags.given;
  for (const auto& text : flags.settings) given.push_back(split_setting("--set", text));
  return given;
}

void make_autocast_work(const train::Config& config) {
  if (config.autocast != "bf16" || config.device != "cpu") return;
  if (const auto note = avoid_amx(); !note.empty()) fmt::print(stderr, "trireme: {}\n", note);
}

void refuse_idle(const TrainFlags& flags, const train::Config& config) {
  for (const auto& [key, text] : flags.given) {
    const auto& field = train::find_field(key);
    if (const auto needed = train::idle_without(config, field.key)) {
      throw ConfigError(fmt::format("{}: has no effect without {}; leave it out", field.flag, *needed));
    }
  }
}

train::Config resolve(const TrainFlags& flags, train::Config config, const cluster::PlanFile* plan) {
  constexpr std::int64_t kUnsaid = -1;  // that no text can mean
  const auto workers = std::exchange(config.workers, kUnsaid);
  if (!flags.config_file.empty()) train::merge_file(config, flags.config_file);
  train::merge_environment(config);
  const auto given = all_given(flags);
  if (plan) set_by_plan(config, *plan, given);
  for (const auto& [key, text] : given) train::set(config, key, text);
  for (const auto& text : flags.model_args) {
    auto [name, value] = split_setting("--model-arg", text);
    config.model_args[name] = value;
  }
  train::apply_optimizer(config);
  train::apply_hybrid(config);
  // As many workers as the mesh has, unless somebody said how many.
  const bool said = config.workers != kUnsaid;
  if (config.workers == kUnsaid) config.workers = workers;
  if (const auto told = train::told_mesh(config); told && !said) config.workers = told->size();
  train::check(config);
  return config;
}

}  // namespace trireme::cli
