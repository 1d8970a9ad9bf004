#include "trireme/cli/torch/uses_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace trireme::cli {
namespace {

std::string rounded(double us) { return us > 0 ? fmt::format("{:.0f}", us) : "-"; }

double libtorch_us(const operators::Use& use) {
  const auto at = std::ranges::find(use.candidates, "libtorch", &operators::Use::Candidate::implementation);
  return at == use.candidates.end() ? 0 : at->us;
}

}  // namespace

std::string uses_table(const std::vector<operators::Use>& uses) {
  constexpr auto kRow = "{:<22} {:<9} {:<36} {:<8} {:<13} {:>9} {:>9} {:>9}\n";
  std::string text =
      fmt::format(kRow, "layer", "operator", "shape", "pass", "picked", "predicted", "measured", "libtorch");
  for (const auto& use : uses) {
    fmt::format_to(std::back_inserter(text), kRow, use.layer, use.operation, use.shape, use.pass, use.picked,
                   rounded(use.predicted_us), rounded(use.measured_us), rounded(libtorch_us(use)));
  }
  return text + "times in µs: what the cost model predicted, the least measured of what was picked, LibTorch's\n";
}

}  // namespace trireme::cli
