#include "trireme/report/summary_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "trireme/base/text/text.h"

namespace trireme::train {
namespace {

struct Column {
  std::string_view title;
  int width;
  std::string (*cell)(const EpochRow&);
};

std::string epoch_of(const EpochRow& row) { return fmt::format("{}/{}", row.epoch, row.epochs); }
std::string loss_of(const EpochRow& row) { return loss_text(row.train_loss); }
std::string train_of(const EpochRow& row) { return row.train_metric.value_or("-"); }
std::string test_of(const EpochRow& row) { return row.test_metric.value_or("-"); }
std::string lr_of(const EpochRow& row) { return fmt::format("{:.4g}", row.lr); }
std::string rate_of(const EpochRow& row) { return grouped(row.samples_per_second); }
std::string time_of(const EpochRow& row) { return duration_text(row.seconds); }

constexpr std::array<Column, 7> kWide{{{"epoch", 7, epoch_of},
                                       {"train loss", 12, loss_of},
                                       {"train {}", 11, train_of},
                                       {"test {}", 10, test_of},
                                       {"lr", 10, lr_of},
                                       {"samples/s", 11, rate_of},
                                       {"time", 9, time_of}}};
constexpr std::array<Column, 5> kNarrow{
    {{"epoch", 7, epoch_of}, {"loss", 8, loss_of}, {"train", 8, train_of}, {"test", 8, test_of}, {"time", 8, time_of}}};

std::span<const Column> columns_for(int width) {
  int needed = 0;
  for (auto& column : kWide) needed += column.width;
  return width > needed ? std::span<const Column>(kWide) : std::span<const Column>(kNarrow);
}

}  // namespace

std::string epoch_heading(int width, std::string_view metric) {
  // In what a column leaves of its width.
  if (metric == "accuracy") metric = "acc";
  std::string line;
  for (auto& column : columns_for(width)) {
    std::string title(column.title);
    const auto at = title.find("{}");
    const bool fits = at != title.npos && title.size() - 2 + metric.size() < static_cast<std::size_t>(column.width);
    if (at != title.npos) fits ? title.replace(at, 2, metric) : title.erase(at - 1);
    line += fmt::format("{:>{}}", title, column.width);
  }
  return line + "\n";
}

std::string epoch_cells(const EpochRow& row, int width) {
  std::string line;
  for (auto& column : columns_for(width)) line += fmt::format("{:>{}}", column.cell(row), column.width);
  return line + "\n";
}

std::string epoch_sentence(const EpochRow& row) {
  auto line = fmt::format("epoch {}: train loss {}", epoch_of(row), loss_of(row));
  if (row.train_metric) line += fmt::format(", train {} {}", row.metric, train_of(row));
  if (row.test_metric) line += fmt::format(", test {} {}", row.metric, test_of(row));
  return line + fmt::format(", lr {}, {} samples/s, {}\n", lr_of(row), rate_of(row), time_of(row));
}

std::string breakdown_table(const StepBreakdown& step, int width) {
  double whole = step.whole();
  auto out = fmt::format("{:<24}{:>8}{:>7}\n", "a step, on average", "ms", "share");
  auto row = [&](std::string_view name, double ms) {
    out += fmt::format("  {:<22}{:>8.3f}{:>6.1f}%\n", name, ms, whole > 0 ? 100 * ms / whole : 0.0);
  };
  row("forward", step.forward);
  row("backward", step.backward);
  row("communication, exposed", step.exposed);
  row("optimizer", step.optimizer);
  row("other", step.other);
  row("whole step", whole);
  auto sum = fmt::format("{:.3f} ms, of which {:.1f}% overlaps with computing", step.communication,
                         100 * std::clamp(step.overlap(), 0.0, 1.0));
  return out + labelled("  communication in all", 24, sum, width);
}

}  // namespace trireme::train
