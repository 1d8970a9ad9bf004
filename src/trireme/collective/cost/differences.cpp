#include "trireme/collective/cost/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace trireme {
namespace {

bool close(double counted, double formula) {
  return std::abs(counted - formula) <= 1e-9 * std::max({std::abs(counted), std::abs(formula), 1e-12});
}

// log2 P as it stands, not rounded up or down by the form itself.
bool has_plain_log(std::string_view text) {
  constexpr std::string_view kLog = "log2 P";
  constexpr std::size_t kBracket = std::string_view("⌈").size();
  for (std::size_t at = text.find(kLog); at != std::string_view::npos; at = text.find(kLog, at + 1)) {
    std::string_view before = at >= kBracket ? text.substr(at - kBracket, kBracket) : "";
    if (before != "⌈" && before != "⌊") return true;
  }
  return false;
}

bool is_spanning(Pattern pattern) { return pattern == Pattern::spanning || pattern == Pattern::composed; }
bool is_tree(Pattern pattern) { return pattern == Pattern::tree || pattern == Pattern::two_trees; }

std::string log_reason(Pattern pattern, int P) {
  int floor_log = std::bit_width(static_cast<unsigned>(P)) - 1;
  std::string start = fmt::format("log2 {} = {:.2f} is not whole: ", P, std::log2(P));
  if (pattern == Pattern::folding) {
    int core = 1 << floor_log;
    return start + fmt::format("{} rank{} beyond {} fold in before and are served after", P - core,
                               P - core == 1 ? "" : "s", core);
  }
  if (is_tree(pattern)) return start + fmt::format("the tree has {} levels below its root", floor_log);
  if (is_spanning(pattern))
    return start + fmt::format("the spanning tree has {} levels of unequal halves", floor_log + 1);
  return start + fmt::format("{} rounds, the last of fewer blocks", floor_log + 1);
}

class Reasons {
 public:
  Reasons(const PricedCall& call, const std::vector<std::string_view>& differ)
      : call_(call), differ_(differ), pattern_(call.algorithm->pattern), P_(call.shape.ranks) {}

  std::string find() {
    if (P_ == 1) return "one rank: nothing is sent";
    if (call_.shape.count == 0 && call_.shape.what != Collective::barrier) return "no elements: nothing is sent";
    few_elements();
    too_few_peers();
    unequal_parts();
    logarithm();
    shape_of_tree();
    circle();
    if (reasons_.empty()) {
      reasons_.push_back(fmt::format("{} differ{} from the form: rounds overlap or messages are unequal",
                                     fmt::join(differ_, ", "), differ_.size() == 1 ? "s" : ""));
    }
    return fmt::format("{}", fmt::join(reasons_, "; "));
  }

 private:
  bool differs(std::string_view quantity) const {
    return std::find(differ_.begin(), differ_.end(), quantity) != differ_.end();
  }
  bool differs_beyond_wires() const { return differ_.size() > (differs("wires") ? 1u : 0u); }
  const Form& form(std::string_view quantity) const {
    const ClosedForm& all = *call_.form;
    return quantity == "wires"       ? all.wires
           : quantity == "rounds"    ? all.rounds
           : quantity == "per round" ? all.bytes_per_round
           : quantity == "total"     ? all.total_bytes
                                     : all.time(call_.wires);
  }
  // Into how many parts the algorithm cuts a vector that is not in blocks already.
  int parts() const {
    if (has_blocks(call_.shape.what) || call_.shape.what == Collective::barrier) return 1;
    std::string_view piece = form("per round").text;
    if (pattern_ == Pattern::two_trees) return 2;
    return piece == "n/P" || piece == "n/2" ? P_ : 1;
  }

  void few_elements() {
    if (parts() > 1 && call_.shape.count < static_cast<std::size_t>(parts())) {
      reasons_.push_back(fmt::format("{} element{} in {} parts: empty parts are not sent", call_.shape.count,
                                     call_.shape.count == 1 ? "" : "s", parts()));
    }
  }

  void too_few_peers() {
    if (!differs("wires")) return;
    if (form("wires").value > P_ - 1 && call_.count.wires == P_ - 1) {
      reasons_.push_back(fmt::format("a rank has only {} peer{}", P_ - 1, P_ == 2 ? "" : "s"));
    } else if (is_tree(pattern_)) {
      reasons_.push_back("in so small a tree no rank has a parent and two children");
    }
  }

  void unequal_parts() {
    std::size_t count = call_.shape.count, cut = static_cast<std::size_t>(parts());
    if (!differs_beyond_wires() || count < cut || count % cut == 0) return;
    if (pattern_ == Pattern::folding && !std::has_single_bit(static_cast<unsigned>(P_)))
      return;  // cut into the core's parts
    reasons_.push_back(
        fmt::format("{} elements do not divide by {}: the largest part has {}", count, cut, (count + cut - 1) / cut));
  }

  void logarithm() {
    if (std::has_single_bit(static_cast<unsigned>(P_))) return;
    bool plain = std::any_of(differ_.begin(), differ_.end(),
                             [&](std::string_view quantity) { return has_plain_log(form(quantity).text); });
    // A spanning tree's halves and a folded core's parts are unequal even where the form has no logarithm.
    if (plain || ((is_spanning(pattern_) || pattern_ == Pattern::folding) && differs_beyond_wires())) {
      reasons_.push_back(log_reason(pattern_, P_));
    }
  }

  void shape_of_tree() {
    if (!differs("time") || !is_tree(pattern_)) return;
    bool full = std::has_single_bit(static_cast<unsigned>(P_ + 1));
    if (pattern_ == Pattern::two_trees) {
      reasons_.push_back("the deepest ranks are not below two children everywhere");
    } else if (!full) {
      reasons_.push_back("the last level is not full: its parents may have one child");
    }
  }

  void circle() {
    if (pattern_ != Pattern::circle) return;
    bool odd = P_ % 2 == 1;
    if (odd && call_.shape.what != Collective::barrier && differs_beyond_wires()) {
      reasons_.push_back(fmt::format("half of {} blocks is not whole", P_));
    }
    if (differs("wires") && call_.count.wires != P_ - 1) {
      reasons_.push_back("some distances forth and back meet the same rank, or no longer do");
    } else if (differs("wires") && form("wires").value < P_ - 1) {
      reasons_.push_back(odd ? "P is odd: no distance leads to the same rank forth and back"
                             : "distances forth and back lead to every rank");
    }
  }

  const PricedCall& call_;
  const std::vector<std::string_view>& differ_;
  Pattern pattern_;
  int P_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string_view> differences(const PricedCall& call) {
  std::vector<std::string_view> found;
  if (!call.form) return found;
  auto compare = [&](std::string_view quantity, double counted, const Form& form) {
    if (!close(counted, form.value)) found.push_back(quantity);
  };
  compare("wires", call.count.wires, call.form->wires);
  compare("rounds", call.count.rounds, call.form->rounds);
  compare("per round", static_cast<double>(call.count.bytes_per_round), call.form->bytes_per_round);
  compare("total", static_cast<double>(call.count.total_bytes), call.form->total_bytes);
  compare("time", call.seconds, call.form->time(call.wires));
  return found;
}

std::string difference_note(const PricedCall& call) {
  auto differ = differences(call);
  return differ.empty() ? "" : Reasons(call, differ).find();
}

}  // namespace trireme
