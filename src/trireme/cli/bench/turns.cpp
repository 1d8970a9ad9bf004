#include "trireme/cli/bench/turns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "trireme/base/error.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/launch/process_tree.h"

namespace trireme::bench {
namespace {

constexpr std::chrono::seconds kSettledBy{120};
constexpr double kStops = 0.1;  // seconds: a thread that is told to stand still does so when it next has a core

// The workers: processes without children. Launchers sleep anyway, and must be able to end their workers.
std::vector<pid_t> leaves_below(pid_t root) {
  std::vector<pid_t> leaves;
  const auto all = launch::descendants(root);
  if (all.empty()) return {root};
  for (pid_t one : all) {
    if (launch::descendants(one).empty()) leaves.push_back(one);
  }
  return leaves;
}

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

PausedRun::PausedRun(const Argv& command, const std::string& folder, std::int64_t settled)
    : command_(fmt::format("{}", fmt::join(command, " "))),
      metrics_(folder + "/metrics.jsonl"),
      child_(start_child(command, output_.fd())) {
  const auto deadline = Deadline::in(kSettledBy);
  for (std::int64_t steps = 0; steps < settled && !ended_; steps += static_cast<std::int64_t>(read().size())) {
    if (deadline.passed()) throw Error(fmt::format("{}: fewer than {} steps in 120 s", command_, settled));
    sleep_for(0.02);
    look();
  }
  if (!ended_) workers_ = leaves_below(child_.pid());
  pause();
}

PausedRun::~PausedRun() { go(); }

void PausedRun::go() {
  if (!std::exchange(paused_, false)) return;
  stood_s_ += now_seconds() - paused_at_;  // at least: whoever goes on may take this thread's core
  for (pid_t one : workers_) ::kill(one, SIGCONT);
}

void PausedRun::pause() {
  if (ended_ || std::exchange(paused_, true)) return;
  for (pid_t one : workers_) ::kill(one, SIGSTOP);
  paused_at_ = now_seconds();
}

void PausedRun::look() {
  const auto code = ended_ ? std::nullopt : child_.ended();
  if (!code) return;
  ended_ = true;
  if (*code != 0) throw Error(fmt::format("{}: {}", command_, output_.first_line()));
}

// A step that is cut in two counts for nothing, and a long one would be cut more often than a short one: it stands
// still when a step has just begun.
void PausedRun::await_step() {
  const auto size = [&] {
    std::error_code none;
    return std::filesystem::file_size(metrics_, none);
  };
  const auto before = size();
  const auto deadline = Deadline::in(kSettledBy);
  while (size() == before && !ended_) {
    if (deadline.passed()) throw Error(fmt::format("{}: no step in 120 s", command_));
    sleep_for(0.0005);
    look();
  }
}

Turn PausedRun::turn(double seconds) {
  go();
  sleep_for(seconds);
  await_step();
  look();
  pause();
  auto steps = read();
  if (!steps.empty()) stood_s_ = 0;  // it stood still between two of them, if none tells of it
  return steps;
}

Turn PausedRun::read() {
  Turn steps;
  std::ifstream file(metrics_);
  file.seekg(read_);
  for (std::string line; std::getline(file, line) && !file.eof();) {  // the last one may be half written
    read_ += static_cast<std::streamoff>(line.size()) + 1;
    const auto told = nlohmann::json::parse(line, nullptr, false);
    if (!told.is_object() || !told.contains("step_ms")) continue;
    const auto seconds = [&](const char* key) { return 1e-3 * told.at(key).get<double>(); };
    TimedStep step{seconds("step_ms"),     seconds("forward_ms"),
                   seconds("backward_ms"), seconds("optimizer_ms"),
                   /*paused=*/false,       told.value("step", std::int64_t{0})};
    // The first that is as long as it stood still was under way then.
    if (stood_s_ > 0 && step.step > stood_s_ - std::min(kStops, stood_s_ / 10)) {
      step.step = std::max(0.0, step.step - std::exchange(stood_s_, 0.0));
      step.paused = true;
    }
    steps.push_back(step);
  }
  return steps;
}

double middle_mean(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t rest = values.size() / 4, count = values.size() - 2 * rest;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += values[rest + i];
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double middle_mean(std::vector<Weighted> values) {
  std::ranges::sort(values, {}, &Weighted::value);
  double all = 0, before = 0, sum = 0;
  for (const auto& one : values) all += one.weight;
  for (const auto& one : values) {
    const double from = std::max(before, all / 4), to = std::min(before + one.weight, 3 * all / 4);
    sum += std::max(0.0, to - from) * one.value;
    before += one.weight;
  }
  return all > 0 ? sum / (all / 2) : 0;
}

double mean_step(const Turn& turn) {
  double sum = 0;
  for (const auto& one : turn) sum += one.step;
  return sum / static_cast<double>(std::max<std::size_t>(turn.size(), 1));
}

TimedStep middle_of(const std::vector<Turn>& turns) {
  std::vector<double> step, forward, backward, optimizer;
  for (const auto& turn : turns) {
    for (const auto& one : turn) {
      step.push_back(one.step);
      if (one.paused) continue;
      forward.push_back(one.forward);
      backward.push_back(one.backward);
      optimizer.push_back(one.optimizer);
    }
  }
  return {middle_mean(step), middle_mean(forward), middle_mean(backward), middle_mean(optimizer)};
}

std::vector<double> residuals_of(const std::vector<Turn>& turns) {
  std::vector<double> all;
  for (const auto& turn : turns) {
    std::vector<double> computed;
    for (const auto& one : turn) {
      if (!one.paused) computed.push_back(one.forward + one.backward + one.optimizer);
    }
    const double usual = median(computed);
    for (double seconds : computed) all.push_back(seconds / usual);
  }
  return all;
}

}  // namespace trireme::bench
