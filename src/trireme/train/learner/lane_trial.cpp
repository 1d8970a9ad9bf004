#include "trireme/train/learner/lane_trial.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trireme/base/median.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme::train {

LaneTrial::LaneTrial(Communicator& world, bool there)
    : world_(world), lanes_(world.impl().lanes.size()), there_(there && lanes_ > 1 && world.size() > 1) {}

void LaneTrial::use(std::size_t lanes) { world_.impl().in_turn = lanes; }

void LaneTrial::before_step() {
  const auto step = steps_++;
  if (tries(step)) use(step % 2 == 0 ? lanes_ : 1);
}

void LaneTrial::after_step(double whole_s, double exposed_s, const ExchangeTimes& exchange, bool in_line) {
  const auto step = steps_ - 1;
  if (!tries(step)) return;
  auto& steps = step % 2 == 0 ? all_ : one_;
  steps.whole_s.push_back(whole_s);
  steps.exposed_s.push_back(exposed_s);
  buckets_ = exchange.buckets.size();
  in_line_ = in_line;
  use(lanes_);
}

std::string LaneTrial::line() const {
  if (!there_) return {};
  if (!enough()) return "lanes: not compared with one lane (the run was too short)";
  const double all = median(all_.whole_s), one = median(one_.whole_s);
  auto text = fmt::format("lanes: a step takes {:.3g} ms on {} lanes and {:.3g} ms on one, {:.2f} times as fast",
                          1e3 * all, lanes_, 1e3 * one, all > 0 ? one / all : 1.0);
  text += fmt::format(" (medians of {} and {}, in turn; {:.3g} and {:.3g} ms of them waiting)", all_.whole_s.size(),
                      one_.whole_s.size(), 1e3 * median(all_.exposed_s), 1e3 * median(one_.exposed_s));
  if (in_line_) return text + "; the exchange is in line, a bucket at a time: lanes need --exchange background";
  if (buckets_ < 2) text += "; one bucket has nothing to take turns with: see --bucket-plan";
  return text;
}

void LaneTrial::add_to(nlohmann::json& summary) const {
  if (!there_) return;
  auto& told = summary["lanes"] = {{"lanes", lanes_}, {"buckets", buckets_}, {"in_line", in_line_}};
  if (!enough()) return;
  const double all = median(all_.whole_s), one = median(one_.whole_s);
  told["step_ms"] = 1e3 * all;
  told["step_ms_one_lane"] = 1e3 * one;
  told["exposed_ms"] = 1e3 * median(all_.exposed_s);
  told["exposed_ms_one_lane"] = 1e3 * median(one_.exposed_s);
  told["gain"] = all > 0 ? one / all : 1.0;
  told["steps"] = all_.whole_s.size() + one_.whole_s.size();
}

}  // namespace trireme::train
