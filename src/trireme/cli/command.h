// A subcommand of `trireme`: one file each, one line in the list in main.cpp.
#pragma once
#include <CLI/CLI.hpp>
#include <array>
#include <string_view>

namespace trireme::cli {

// Thrown by a subcommand that has said all there is to say and ends the program with this code.
struct Exit {
  int code;
};

// What `bench` measures besides collectives: commands of their own, `bench-ps` and so on, and those that need LibTorch.
inline constexpr std::array<std::string_view, 7> kOwnBenchmarks{"ps",      "ps-soak",  "codec", "equal",
                                                                "predict", "simulate", "ops"};
inline constexpr std::array<std::string_view, 4> kTorchBenchmarks{"ddp", "learning", "parallel", "step"};
// Of `bench ops`, the peer that needs it.
inline constexpr std::string_view kTorchPeer = "libtorch";

// Adds the subcommand's options to `app`; the callback runs when it was chosen. Errors are thrown, never printed.
using Command = void (*)(CLI::App& app);

void add_run(CLI::App& app);             // run.cpp
void add_check(CLI::App& app);           // check.cpp
void add_cost(CLI::App& app);            // cost.cpp
void add_explain(CLI::App& app);         // explain.cpp
void add_tune(CLI::App& app);            // tune.cpp
void add_plan(CLI::App& app);            // plan.cpp, plan_table.cpp
void add_diff(CLI::App& app);            // diff.cpp
void add_simulate(CLI::App& app);        // simulate.cpp
void add_serve(CLI::App& app);           // serve.cpp
void add_bench(CLI::App& app);           // bench.cpp, bench/worker.cpp
void add_bench_ps(CLI::App& app);        // bench_ps.cpp, bench_ps_worker.cpp
void add_bench_codec(CLI::App& app);     // bench_codec.cpp
void add_bench_ops(CLI::App& app);       // bench_ops.cpp, bench/ops/ops_command.cpp
void add_bench_predict(CLI::App& app);   // bench_predict.cpp, bench/predict_calls.cpp
void add_bench_equal(CLI::App& app);     // bench_equal.cpp
void add_bench_simulate(CLI::App& app);  // bench_simulate.cpp, bench/simulate_cases.cpp
void add_ps_soak(CLI::App& app);         // ps_soak.cpp, ps_soak_worker.cpp

}  // namespace trireme::cli
