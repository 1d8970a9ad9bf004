// The flags of a training run, made from the table of settings: shared by the commands that train.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/cluster/planner/plan_file.h"
#include "trireme/train/config/config.h"

namespace trireme::cli {

struct TrainFlags {
  std::string config_file;
  std::vector<std::pair<std::string, std::string>> given;  // key and text, in the order of the table
  std::vector<std::string> settings;                       // of --set, key=value
  std::vector<std::string> model_args;                     // name=value
};

// What is not said anywhere. A program of a user's own changes it before its flags are added.
train::Config& default_config();

// All of them, as `given` texts that nothing has looked at yet. The result must outlive the parse.
std::shared_ptr<TrainFlags> add_train_flags(CLI::App& command);

// Defaults, under the file, under the environment, under the plan where there is one, under the flags. `base` replaces
// the defaults. A flag that says something else than the plan is refused: ConfigError names it.
train::Config resolve(const TrainFlags& flags, train::Config base = default_config(),
                      const cluster::PlanFile* plan = nullptr);

// All that --NAME and --set said, by key of the table or as --set wrote it.
std::vector<std::pair<std::string, std::string>> all_given(const TrainFlags& flags);

// Throws ConfigError naming a flag that has no effect under the settings that result. What --set, a file, the
// environment, a plan or a resumed run says may lie idle.
void refuse_idle(const TrainFlags& flags, const train::Config& config);

// Where --autocast bf16 is asked for on the CPU: avoid_amx(), and what it has to say. Processes that are started from
// here on inherit it.
void make_autocast_work(const train::Config& config);

// "name=value", of the flag named. Throws ConfigError.
std::pair<std::string, std::string> split_setting(std::string_view flag, std::string_view text);

}  // namespace trireme::cli
