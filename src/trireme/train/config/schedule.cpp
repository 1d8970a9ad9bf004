#include "trireme/train/config/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/text.h"

namespace trireme::train {
namespace {

using Made = std::unique_ptr<RateSchedule>;
using Numbers = std::vector<double>;

double scaled_base(const ScheduleOptions& options) {
  if (options.reference_batch == 0) return options.base_lr;
  return options.base_lr * static_cast<double>(options.global_batch) / static_cast<double>(options.reference_batch);
}

std::int64_t warmup_steps(const ScheduleOptions& options) {
  double steps = std::round(options.warmup_epochs * static_cast<double>(options.steps_per_epoch));
  return options.warmup_steps + static_cast<std::int64_t>(steps);
}

// Warm-up: step s of W has (s + 1)/W of the rate, so that step W - 1 is the first at the full one.
double ramp(std::int64_t step, std::int64_t warmup) {
  return step < warmup ? static_cast<double>(step + 1) / static_cast<double>(warmup) : 1.0;
}

// base · shape(step) · ramp(step)
class Shaped : public RateSchedule {
 public:
  Shaped(const ScheduleOptions& options, std::function<double(std::int64_t)> shape)
      : base_(scaled_base(options)), warmup_(warmup_steps(options)), shape_(std::move(shape)) {}
  double lr(std::int64_t step) const override { return base_ * shape_(step) * ramp(step, warmup_); }

 private:
  double base_;
  std::int64_t warmup_;
  std::function<double(std::int64_t)> shape_;
};

// The steps after the warm-up, over which cosine and one-cycle run.
std::int64_t steps_after_warmup(std::string_view name, const ScheduleOptions& options) {
  std::int64_t warmup = warmup_steps(options), left = options.total_steps - warmup;
  if (left < 1) {
    throw ConfigError(fmt::format("schedule {}: needs more steps than those of the warm-up, has {} and warms up for {}",
                                  name, options.total_steps, warmup));
  }
  return left;
}

void require(bool holds, std::string_view name, std::string_view what) {
  if (!holds) throw ConfigError(fmt::format("schedule {}: {}", name, what));
}

Made make_constant(const Numbers& arguments, const ScheduleOptions& options) {
  require(arguments.empty(), "constant", "takes no numbers");
  return std::make_unique<Shaped>(options, [](std::int64_t) { return 1.0; });
}

// gamma to the power of the milestones passed.
Made make_step(const Numbers& arguments, const ScheduleOptions& options) {
  require(arguments.size() >= 2, "step", "needs milestones in epochs and a factor, as in step:30,60,0.1");
  require(options.steps_per_epoch > 0, "step", "needs to know how many steps an epoch has");
  double gamma = arguments.back();
  Numbers milestones(arguments.begin(), arguments.end() - 1);
  require(gamma > 0, "step", "the factor must be above 0");
  require(std::ranges::is_sorted(milestones) && milestones[0] >= 0, "step", "milestones must be in order");
  for (double& milestone : milestones) milestone = std::round(milestone * static_cast<double>(options.steps_per_epoch));
  return std::make_unique<Shaped>(options, [gamma, milestones](std::int64_t step) {
    auto passed = std::ranges::upper_bound(milestones, static_cast<double>(step)) - milestones.begin();
    return std::pow(gamma, static_cast<double>(passed));
  });
}

double half_cosine(double from, double to, double progress) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

// Loshchilov & Hutter, "SGDR", 2016, one period: from 1 at the end of the warm-up to the floor after the last step.
Made make_cosine(const Numbers& arguments, const ScheduleOptions& options) {
  require(arguments.size() <= 1, "cosine", "takes one number at most, the share of the rate to end at");
  double floor = arguments.empty() ? 0 : arguments[0];
  require(floor >= 0 && floor <= 1, "cosine", "must end at a share of the rate from 0 to 1");
  std::int64_t warmup = warmup_steps(options), steps = steps_after_warmup("cosine", options);
  return std::make_unique<Shaped>(options, [=](std::int64_t step) {
    std::int64_t done = std::clamp<std::int64_t>(step - warmup, 0, steps);
    return half_cosine(1, floor, static_cast<double>(done) / static_cast<double>(steps));
  });
}

// Smith & Topin, "Super-convergence", 2017, with PyTorch's numbers: up by a cosine from 1/25 over the first 30 % of the
// steps, then down to 1/250,000.
Made make_one_cycle(const Numbers& arguments, const ScheduleOptions& options) {
  require(arguments.size() <= 1, "one-cycle", "takes one number at most, the share of the steps that go up");
  double up = arguments.empty() ? 0.3 : arguments[0];
  require(up > 0 && up < 1, "one-cycle", "the share of the steps that go up must be between 0 and 1");
  std::int64_t warmup = warmup_steps(options), steps = steps_after_warmup("one-cycle", options);
  return std::make_unique<Shaped>(options, [=](std::int64_t step) {
    constexpr double kStart = 1.0 / 25, kEnd = kStart / 1e4;
    double last = static_cast<double>(steps - 1), top = std::max(0.0, up * static_cast<double>(steps) - 1);
    double at = std::clamp(static_cast<double>(step - warmup), 0.0, last);
    if (at < top) return half_cosine(kStart, 1, at / top);
    return last > top ? half_cosine(1, kEnd, (at - top) / (last - top)) : 1.0;
  });
}

// Times `factor` when the metric was not better, by one part in 10,000, for more than `patience` observations in a row.
class Plateau : public RateSchedule {
 public:
  Plateau(const ScheduleOptions& options, double patience, double factor)
      : base_(scaled_base(options)),
        warmup_(warmup_steps(options)),
        higher_(options.higher_is_better),
        patience_(patience),
        factor_(factor),
        best_(higher_ ? -kInfinity : kInfinity) {}

  double lr(std::int64_t step) const override { return base_ * scale_ * ramp(step, warmup_); }

  void observe(double metric) override {
    double margin = std::isfinite(best_) ? 1e-4 * std::abs(best_) : 0;
    bool better = higher_ ? metric > best_ + margin : metric < best_ - margin;
    if (better) {
      best_ = metric;
      waited_ = 0;
    } else if (++waited_ > patience_) {
      scale_ *= factor_;
      waited_ = 0;
    }
  }

  // JSON knows no infinity: before the first observation there is no best, and `observed` says so.
  std::vector<std::pair<std::string, double>> state() const override {
    bool observed = std::isfinite(best_);
    return {{"scale", scale_}, {"waited", waited_}, {"observed", observed}, {"best", observed ? best_ : 0}};
  }

  void load(const std::vector<std::pair<std::string, double>>& state) override {
    auto value = [&](std::string_view name) {
      auto found = std::ranges::find(state, name, &std::pair<std::string, double>::first);
      if (found == state.end()) throw DataError(fmt::format("state of schedule plateau: {} is missing", name));
      return found->second;
    };
    double scale = value("scale"), waited = value("waited"), observed = value("observed"), best = value("best");
    scale_ = scale;
    waited_ = waited;
    best_ = observed != 0 ? best : higher_ ? -kInfinity : kInfinity;
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  const double base_;
  const std::int64_t warmup_;
  const bool higher_;
  const double patience_, factor_;
  double best_, scale_ = 1, waited_ = 0;
};

Made make_plateau(const Numbers& arguments, const ScheduleOptions& options) {
  require(arguments.size() <= 2, "plateau", "takes a patience and a factor, as in plateau:5,0.5");
  double patience = !arguments.empty() ? arguments[0] : 5, factor = arguments.size() > 1 ? arguments[1] : 0.5;
  require(patience >= 0 && patience == std::floor(patience), "plateau", "the patience must be a whole number");
  require(factor > 0 && factor < 1, "plateau", "the factor must be between 0 and 1");
  return std::make_unique<Plateau>(options, patience, factor);
}

constexpr ScheduleEntry kSchedules[] = {
    {"constant", "", "always the same", make_constant},
    {"step", "epoch,…,factor", "times the factor at each of the epochs", make_step},
    {"cosine", "[floor]", "half a cosine, down to a share of the rate (0)", make_cosine},
    {"one-cycle", "[up]", "up over a share of the steps (0.3), then down to almost nothing", make_one_cycle},
    {"plateau", "[patience[,factor]]",
     "times the factor (0.5) when validation did not improve for longer than the "
     "patience (5)",
     make_plateau},
};

Numbers parse_numbers(std::string_view name, std::string_view text) {
  Numbers numbers;
  while (true) {
    std::size_t comma = text.find(',');
    std::string_view word = text.substr(0, comma);
    double number = 0;
    auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || stop != word.data() + word.size() || !std::isfinite(number)) {
      throw ConfigError(fmt::format("schedule {}: '{}' is not a number", name, word));
    }
    numbers.push_back(number);
    if (comma == std::string_view::npos) return numbers;
    text.remove_prefix(comma + 1);
  }
}

void check(const ScheduleOptions& options) {
  auto fits = [](bool holds, std::string_view what) {
    if (!holds) throw ConfigError(fmt::format("learning rate: {}", what));
  };
  fits(options.base_lr > 0 && std::isfinite(options.base_lr), "must be above 0");
  fits(options.warmup_steps >= 0 && options.warmup_epochs >= 0, "a warm-up cannot be negative");
  fits(options.warmup_epochs == 0 || options.steps_per_epoch > 0,
       "a warm-up in epochs needs to know how many steps an epoch has");
  fits(options.reference_batch >= 0, "the reference batch cannot be negative");
  fits(options.reference_batch == 0 || options.global_batch > 0, "scaling needs to know the global batch");
}

}  // namespace

std::span<const ScheduleEntry> schedules() { return kSchedules; }

std::unique_ptr<RateSchedule> make_schedule(std::string_view text, const ScheduleOptions& options) {
  std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const ScheduleEntry& entry : kSchedules) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    check(options);
    Numbers numbers;
    if (colon != std::string_view::npos) numbers = parse_numbers(name, text.substr(colon + 1));
    return entry.make(numbers, options);
  }
  throw ConfigError(fmt::format("no schedule is called {}; {}there are {}", clipped(name), did_you_mean(name, names),
                                fmt::join(names, ", ")));
}

}  // namespace trireme::train
