#include "trireme/cli/bench/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/cli/bench/cores.h"
#include "trireme/cli/bench/numbers.h"

namespace trireme::bench {
namespace {

constexpr double kStartSeconds = 60;
constexpr double kAnswerSeconds = 60;

}  // namespace

RankGroup::RankGroup(std::string name, int ranks, const std::vector<Argv>& commands, Listener& listener)
    : name_(std::move(name)) {
  for (int i = 0; i < ranks; ++i) wires_.emplace_back(-1);
  for (auto& command : commands) children_.push_back(start_child(command, output_.fd()));
  meet(listener);
}

RankGroup::~RankGroup() {
  try {
    ask("quit", 2);
  } catch (const std::exception&) {  // they are ended below either way
  }
  wires_.clear();
  for (auto& child : children_) child.finish(std::chrono::seconds(2));
}

void RankGroup::meet(Listener& listener) {
  auto deadline = Deadline::in_seconds(kStartSeconds);
  for (std::size_t come = 0; come < wires_.size();) {
    for (auto& child : children_) {
      if (child.ended()) fail(-1, "ended before all its ranks were ready");
    }
    if (deadline.passed()) fail(-1, fmt::format("{} of {} ranks ready after {} s", come, wires_.size(), kStartSeconds));
    int fd = listener.accept(std::chrono::milliseconds(20));
    if (fd < 0) continue;
    Wire wire(fd);
    std::istringstream words(wire.read_line(deadline));
    std::string hello;
    int rank = -1;
    words >> hello >> rank;
    if (hello != "hello" || rank < 0 || rank >= ranks()) fail(rank, "said something else than hello");
    std::getline(words >> std::ws, version_);
    wires_[rank] = std::move(wire);
    ++come;
  }
}

std::vector<std::string> RankGroup::ask(const std::string& line, double seconds) {
  auto deadline = Deadline::in_seconds(seconds);
  std::vector<std::string> answers;
  for (int rank = 0; rank < ranks(); ++rank) {
    try {
      wires_[rank].send_line(line);
    } catch (const Error& error) {
      fail(rank, error.what());
    }
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    std::string answer;
    try {
      answer = wires_[rank].read_line(deadline);
    } catch (const Error& error) {
      fail(rank, fmt::format("at '{}': {}", line, error.what()));
    }
    if (!answer.starts_with("ok")) fail(rank, answer.substr(std::min<std::size_t>(answer.size(), 6)));
    answers.push_back(answer.substr(std::min<std::size_t>(answer.size(), 3)));
  }
  return answers;
}

RankGroup::Choice RankGroup::prepare(int what, int dtype, int op, std::size_t count, int buffers) {
  auto answers = ask(fmt::format("prepare {} {} {} {} {}", what, dtype, op, count, buffers), kAnswerSeconds);
  Choice choice;
  std::istringstream(answers[0]) >> choice.algorithm >> choice.transport;
  return choice;
}

void RankGroup::ask_times(const std::string& line, double seconds, std::size_t iterations,
                          const std::function<void(const std::vector<float>&, std::size_t)>& each) {
  auto answers = ask(line, seconds);
  std::vector<float> times(iterations);
  for (int rank = 0; rank < ranks(); ++rank) {
    std::size_t n = 0, extra = 0;
    std::istringstream(answers[rank]) >> n >> extra;
    if (n != iterations) fail(rank, fmt::format("answered {} iterations, not {}", n, iterations));
    wires_[rank].read(std::as_writable_bytes(std::span(times)), Deadline::in_seconds(kAnswerSeconds));
    each(times, extra);
  }
}

RankGroup::Times RankGroup::burst(std::size_t warmup, std::size_t iterations, double expected_s) {
  return timed(fmt::format("burst {} {}", warmup, iterations), iterations, kAnswerSeconds + 20 * expected_s);
}

RankGroup::Times RankGroup::timed(const std::string& line, std::size_t iterations, double seconds) {
  Times result;
  result.slowest_us.assign(iterations, 0);
  ask_times(line, seconds, iterations, [&](const std::vector<float>& times, std::size_t errors) {
    double sum = 0;
    for (std::size_t i = 0; i < iterations; ++i) {
      result.slowest_us[i] = std::max(result.slowest_us[i], times[i]);
      sum += times[i];
    }
    result.mean_us = std::max(result.mean_us, sum / static_cast<double>(iterations));
    result.errors += errors;
  });
  return result;
}

double RankGroup::stream(std::size_t group, std::size_t iterations) {
  double rate = 0;
  ask_times(fmt::format("stream {} {}", group, iterations), kAnswerSeconds, iterations,
            [&](const std::vector<float>& times, std::size_t bytes) {
              double us = median(std::vector<double>(times.begin(), times.end()));
              if (us > 0) rate += 2 * static_cast<double>(bytes) / us * 1e6;
            });
  // Ranks that share cores do not stream all at once.
  return rate * std::min(1.0, static_cast<double>(cores_of_process().size()) / ranks());
}

void RankGroup::release() { ask("release", kAnswerSeconds); }

void RankGroup::fail(int rank, const std::string& why) {
  std::string said = output_.first_line();
  throw Error(fmt::format("{}{}: {}{}", name_, rank >= 0 ? fmt::format(" rank {}", rank) : "", why,
                          said.empty() ? "" : "; it said: " + said));
}

}  // namespace trireme::bench
