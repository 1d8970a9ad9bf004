// The commands that need LibTorch: one file each, one line in the list in train_main.cpp, and one in torch_commands.h,
// by which `trireme` knows them.
#pragma once
#include "trireme/cli/command.h"

#include <string>
#include <vector>

namespace trireme::cli {

// What followed the name of the command, as it was written.
const std::vector<std::string>& program_arguments();

// All but the benchmarks.
void add_training_commands(CLI::App& app);
// The exit code of a program with these commands.
int run_training_program(CLI::App& app, int argc, char** argv);

void add_train(CLI::App& app);                 // train.cpp
void add_eval(CLI::App& app);                  // eval.cpp
void add_predict(CLI::App& app);               // predict.cpp
void add_compare(CLI::App& app);               // compare.cpp
void add_data(CLI::App& app);                  // data.cpp
void add_tune_ops(CLI::App& app);              // tune_ops.cpp
void add_profile(CLI::App& app);               // profile.cpp
void add_bench_ddp(CLI::App& app);             // bench_ddp.cpp
void add_bench_learning(CLI::App& bench);      // bench_learning.cpp, likewise
void add_bench_ops_libtorch(CLI::App& bench);  // bench_ops_libtorch.cpp, likewise
void add_bench_parallel(CLI::App& bench);      // bench_parallel.cpp, a subcommand of bench
void add_bench_step(CLI::App& bench);          // bench_step.cpp, likewise

}  // namespace trireme::cli
