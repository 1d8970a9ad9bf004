#include "trireme/cli/bench/predict/predict_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/session.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/tuning.h"

namespace trireme::bench {
namespace {

constexpr std::uint64_t kCallFootprint = 64ULL << 20;  // per rank, over its rotating buffers
constexpr int kMostCallBuffers = 64;
constexpr double kCallSeconds = 0.004;
constexpr double kMostCalls = 20'000, kFewestCalls = 200;  // long calls use each buffer several times too,
constexpr double kLongestSeconds = 0.2, kFewestLong = 10;  // but for the longest

// Fitted at powers of two, judged half way between them.
struct Size {
  std::size_t bytes;
  bool judged;
};
std::vector<Size> sizes(Collective what, std::size_t largest) {
  if (what == Collective::barrier) return {{0, false}, {0, true}};
  std::vector<Size> all;
  for (std::size_t bytes = 64; bytes <= largest; bytes *= 2) {
    all.push_back({bytes, false});
    if (2 * bytes <= largest) all.push_back({bytes + bytes / 2, true});
  }
  return all;
}

Call call_of(const CallsQuestion& question, Collective what, std::size_t bytes) {
  std::size_t count = bytes / sizeof(float);
  if (has_blocks(what)) count = std::max<std::size_t>(count / static_cast<std::size_t>(question.ranks), 1);
  return {what, 0, question.ranks, 0, count, count};
}

double seconds_of(RankGroup& group, const Call& call, std::size_t& errors) {
  const double bytes = std::max(call_bytes(call, DType::f32), 1.0);
  const int buffers =
      static_cast<int>(std::clamp(static_cast<double>(kCallFootprint) / bytes, 2.0, double{kMostCallBuffers}));
  group.prepare(static_cast<int>(call.what), static_cast<int>(DType::f32), static_cast<int>(Op::sum), call.count,
                buffers);
  const double once = std::max(1e-7, group.burst(2, 4, 0).mean_us * 1e-6);
  const double fewest = std::clamp(kLongestSeconds / once, kFewestLong, kFewestCalls);
  const auto iterations = static_cast<std::size_t>(std::clamp(kCallSeconds / once, fewest, kMostCalls));
  const auto times = group.burst(2, iterations, once * static_cast<double>(iterations));
  errors += times.errors;
  return median(std::vector<double>(times.slowest_us.begin(), times.slowest_us.end())) * 1e-6;
}

// All collectives that have an algorithm of this name, on one group that runs it.
class Algorithms {
 public:
  Algorithms(const CallsQuestion& question, const Algorithm& one, const LinkModel& model)
      : question_(question), name_(one.name), model_(model) {
    Options options;
    options.ranks = question.ranks;
    options.transport = question.transport;
    options.algorithm = name_;
    // In private memory `direct` becomes `staged`; where nothing can be read, memory is memory.
    options.buffers = one.pattern == Pattern::stages ? "private" : "heap";
    const std::string socket = folder_.path() + "/trireme";
    Listener listener(socket);
    group_ = std::make_unique<RankGroup>("trireme", question.ranks, own_commands(options, socket), listener);
  }

  void judge(const Algorithm& algorithm, std::vector<Judged>& all) {
    const auto list = sizes(algorithm.what, question_.largest);
    std::vector<Rounds> rounds(list.size());
    for (int round = 0; round < question_.rounds; ++round) judge_once(algorithm, list, rounds);
    if (errors_ > 0) throw DataError(fmt::format("{} elements of {} were wrong", errors_, name(algorithm.what)));
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (!list[k].judged) continue;
      const double usual = median(rounds[k].predicted);
      Judged one{fmt::format("{}, {} ranks", question_.transport, question_.ranks),
                 fmt::format("{} {} {}", name(algorithm.what), name_, format_size(list[k].bytes)),
                 usual,
                 {}};
      // Each is held against the prediction of its own round.
      for (std::size_t r = 0; r < rounds[k].measured.size(); ++r) {
        one.measured_s.push_back(rounds[k].measured[r] * usual / rounds[k].predicted[r]);
      }
      all.push_back(std::move(one));
    }
  }

 private:
  struct Rounds {
    std::vector<double> predicted, measured;
  };

  // All sizes in turn, within a second or two; those to be judged are predicted from the others.
  void judge_once(const Algorithm& algorithm, const std::vector<Size>& list, std::vector<Rounds>& rounds) {
    LinkModel fitted = model_;
    fitted.corrections = Corrections(question_.ranks);
    std::vector<double> seconds;
    for (const auto& size : list) {
      show_progress(fmt::format("{}, {} ranks: {} by {}, {}", question_.transport, question_.ranks,
                                name(algorithm.what), name_, format_size(size.bytes)));
      const Call call = call_of(question_, algorithm.what, size.bytes);
      seconds.push_back(seconds_of(*group_, call, errors_));
      if (size.judged) continue;
      fitted.corrections.add(algorithm.what, name_, std::max(call_bytes(call, DType::f32), 1.0),
                             seconds.back() / predict(algorithm, call, DType::f32, model_));
    }
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (!list[k].judged) continue;
      const Call call = call_of(question_, algorithm.what, list[k].bytes);
      rounds[k].predicted.push_back(predict(algorithm, call, DType::f32, fitted));
      rounds[k].measured.push_back(seconds[k]);
    }
  }

  const CallsQuestion& question_;
  const std::string name_;
  const LinkModel& model_;  // without corrections
  TemporaryFolder folder_;
  std::unique_ptr<RankGroup> group_;
  std::size_t errors_ = 0;
};

}  // namespace

std::vector<Judged> judge_calls(const CallsQuestion& question) {
  auto tuning = load_tuning(question.transport);
  LinkModel model = (tuning ? *tuning : default_tuning(question.transport)).model;
  model.corrections = {};
  std::map<std::string_view, std::vector<const Algorithm*>> by_name;
  for (const Algorithm& algorithm : algorithms()) {
    if (!algorithm.shared || question.transport != "tcp") by_name[algorithm.name].push_back(&algorithm);
  }
  std::vector<Judged> all;
  for (const auto& [_, members] : by_name) {
    Algorithms group(question, *members.front(), model);
    for (const Algorithm* algorithm : members) group.judge(*algorithm, all);
  }
  show_progress("");
  return all;
}

}  // namespace trireme::bench
