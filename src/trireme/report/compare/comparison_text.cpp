#include "trireme/report/compare/comparison_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "trireme/base/text/text.h"
#include "trireme/report/compare/comparison_summary.h"
#include "trireme/report/compare/comparison_theory.h"

namespace trireme::train {
namespace {

struct Column {
  std::string title;
  std::vector<std::string> cells;
  std::vector<Standing> standings;
  bool left = false;  // aligned to the left
  int width() const {
    int widest = display_width(title);
    for (const auto& cell : cells) widest = std::max(widest, display_width(cell));
    return widest;
  }
};

constexpr int kGap = 3;  // columns before a column; the last of them is for its mark

struct Unit {
  const char* name;
  double scale = 1;
};

Unit unit_of(double mean, Measure::Kind kind) {
  if (kind == Measure::kShare) return {"%", 0.01};
  if (kind == Measure::kSeconds) return {" s"};
  if (kind != Measure::kBytes || mean < 1e3) return {kind == Measure::kBytes ? " B" : ""};
  return mean < 1e6 ? Unit{" KB", 1e3} : mean < 1e9 ? Unit{" MB", 1e6} : Unit{" GB", 1e9};
}

// With as many digits as become a number of the size of `mean`.
std::string plain(double value, double mean, Measure::Kind kind) {
  double scale = unit_of(mean, kind).scale;
  if (kind == Measure::kShare) return fmt::format("{:.2f}", value / scale);
  if (kind == Measure::kSeconds) return fmt::format("{:.{}f}", value, mean < 10 ? 2 : 1);
  if (kind == Measure::kBytes && scale > 1) return fmt::format("{:.{}f}", value / scale, mean < 10 * scale ? 2 : 1);
  return kind == Measure::kNumber && value < 1e3 ? fmt::format("{:.3g}", value) : grouped(value);
}

std::string cell_of(const Spread& spread, const VariantSummary& summary, Measure::Kind kind, bool unicode) {
  if (spread.count == 0) return "-";
  const char* unit = unit_of(spread.mean, kind).name;
  auto number = [&](double value) { return plain(value, spread.mean, kind); };
  auto text = number(spread.mean);
  if (spread.low == spread.high || spread.count == 1) {
    text += unit;
  } else if (spread.count == 2) {
    text += fmt::format("{} ({}..{})", unit, number(spread.low), number(spread.high));
  } else {
    text += fmt::format(" {} {}{}", unicode ? "±" : "+-", number(spread.deviation), unit);
  }
  if (spread.count < summary.finished) text += fmt::format(" [{}/{}]", spread.count, summary.finished);
  return text;
}

const char* mark_of(Standing standing, bool unicode) {
  if (standing == Standing::kBest) return "*";
  return standing == Standing::kWithinSpread ? unicode ? "≈" : "~" : " ";
}

std::vector<Column> columns_of(const Comparison& comparison, const std::vector<VariantSummary>& summaries,
                               double target, bool unicode) {
  std::vector<Column> columns;
  for (std::size_t k = 0; k < comparison.varied.size(); ++k) {
    auto& column = columns.emplace_back();
    column.title = printable(comparison.varied[k].name);
    for (const auto& variant : comparison.variants) column.cells.push_back(printable(variant.values[k]));
    column.left = true;
  }
  for (const auto& measure : shown_measures(comparison, summaries)) {
    bool timed = measure.key == "target_seconds", counted = measure.key == "target_bytes";
    if ((timed || counted) && !std::isfinite(target)) continue;
    auto& column = columns.emplace_back();
    column.title = timed     ? fmt::format("to {}", comparison.by.text(target))
                   : counted ? fmt::format("sent to {}", comparison.by.text(target))
                             : std::string(measure.title);
    for (const auto& summary : summaries) {
      column.cells.push_back(cell_of(summary.*(measure.member), summary, measure.kind, unicode));
    }
    column.standings = standings(summaries, measure);
  }
  return columns;
}

int width_of(const std::vector<Column>& columns) {
  int width = -kGap;
  for (const auto& column : columns) width += kGap + column.width();
  return width + 1;
}

std::string padded(const Column& column, const std::string& text) {
  std::string blanks(static_cast<std::size_t>(column.width() - display_width(text)), ' ');
  return column.left ? text + blanks : blanks + text;
}

std::string trimmed(std::string line) { return line.erase(line.find_last_not_of(' ') + 1); }

std::string rows_of(const std::vector<Column>& columns, std::size_t rows, const Screen& screen) {
  std::string heading, text;
  for (const auto& column : columns) heading += padded(column, column.title) + std::string(kGap, ' ');
  auto begin = screen.color ? "\x1b[1m" : "", end = screen.color ? "\x1b[0m" : "";
  for (std::size_t r = 0; r < rows; ++r) {
    std::string line;
    for (const auto& column : columns) {
      auto standing = column.standings.empty() ? Standing::kOpen : column.standings[r];
      bool best = standing == Standing::kBest;
      line += fmt::format("{}{}{}{}", best ? begin : "", padded(column, column.cells[r]),
                          mark_of(standing, screen.unicode), best ? end : "");
      line += std::string(kGap - 1, ' ');
    }
    text += trimmed(line) + "\n";
  }
  return trimmed(heading) + "\n" + text;
}

// What the numbers stand for, and what they do not.
std::string legend(const Comparison& comparison, const std::vector<VariantSummary>& summaries, const Screen& screen) {
  int most = 0, fewest = std::numeric_limits<int>::max();
  bool marked = false, partly = false;
  for (const auto& summary : summaries) {
    if (summary.finished > 0) fewest = std::min(fewest, summary.finished);
    most = std::max(most, summary.finished);
    partly = partly || summary.to_target.count < summary.finished;
  }
  for (const auto& measure : measures(comparison.by)) {
    for (auto standing : standings(summaries, measure)) marked = marked || standing != Standing::kOpen;
  }
  std::string out;
  auto say = [&](const std::string& text) { out += labelled("", 0, text, screen.width); };
  if (most == 0) return out;
  if (most == 1) {
    say("One seed each: nothing is known of the spread, so that small differences may be chance; --seeds 3 tells.");
  } else {
    std::string how =
        most >= 3 ? fmt::format("Mean {} standard deviation over the seeds.", screen.unicode ? "±" : "+-") : "";
    if (fewest == 2 || (fewest == 1 && most == 2))
      how += (how.empty() ? "" : " ") + std::string("Mean (lowest..highest) of two seeds.");
    say(how);
  }
  if (marked) {
    say(fmt::format("* the best mean; {} no further from it than the spread of both, so not told apart.",
                    screen.unicode ? "≈" : "~"));
  }
  if (partly) say("[k/n]: only k of n runs got there; the mean is of those.");
  if (!(comparison.target > 0))
    say(
        fmt::format("The target is the {} mean test {} of the variants; times are known to a test: of whole epochs, or "
                    "--evals-per-epoch.",
                    comparison.by.higher_is_better ? "lowest" : "highest", comparison.by.title));
  return out;
}

// What the columns about synchronization mean, of those that are there.
std::string costs_words(const std::vector<Column>& shown, int width) {
  constexpr std::pair<std::string_view, std::string_view> kMeaning[] = {
      {"sent", "sent: bytes of training, by a worker"},
      {"wait", "wait: the share of a worker's time"},
      {"stale", "stale: by how many steps what was applied lagged"},
      {"consensus", "consensus: how far the workers' weights lie from their common model"}};
  std::vector<std::string_view> meanings;
  for (auto [title, meaning] : kMeaning) {
    if (std::ranges::find(shown, title, &Column::title) != shown.end()) meanings.push_back(meaning);
  }
  return meanings.empty() ? "" : labelled("", 0, fmt::format("{}.", fmt::join(meanings, "; ")), width);
}

// "rank 1 in 5 of 6 runs"
std::string straggler_words(const Comparison& comparison, int width) {
  std::map<double, int> named;
  int finished = 0;
  for (const auto& run : comparison.runs) {
    finished += run.finished();
    if (run.finished() && run.straggler >= 0) ++named[run.straggler];
  }
  if (named.empty()) return "";
  std::vector<std::string> ranks;
  for (auto [rank, runs] : named) ranks.push_back(fmt::format("rank {:.0f} in {} of {} runs", rank, runs, finished));
  auto given = comparison.base.straggle.empty() ? "" : fmt::format(" (--straggle {})", comparison.base.straggle);
  return labelled(
      "", 0,
      fmt::format("Slow for good by its own compute, waits excluded: {}{}.", fmt::join(ranks, ", "), printable(given)),
      width);
}

std::string theory_lines(const Comparison& comparison, double target, const Screen& screen) {
  if (!comparison.varies("sync.") && !comparison.varies("run.workers")) return "";
  std::string out;
  for (const auto& line : theory_words(comparison, theory_of(comparison, target), target, screen.unicode)) {
    out += labelled("", 0, line, screen.width);
  }
  return out;
}

}  // namespace

std::string run_words(const Comparison& comparison, const ComparedRun& run) {
  auto words = fmt::format("{} seed={}", printable(comparison.variants[run.variant].label), run.seed);
  if (run.finished()) {
    return words + fmt::format("  {} in {}", comparison.by.text(run.test_metric), duration_text(run.train_seconds));
  }
  return words + "  " + run.status + (run.error.empty() ? "" : ": " + printable(run.error));
}

std::string comparison_table(const Comparison& comparison, const Screen& screen) {
  double target = target_of(comparison);
  std::vector<VariantSummary> summaries;
  for (std::size_t v = 0; v < comparison.variants.size(); ++v) summaries.push_back(summarize(comparison, v, target));
  auto columns = columns_of(comparison, summaries, target, screen.unicode);
  std::vector<std::string> left_out;
  for (std::size_t c = comparison.varied.size() + 1; c < columns.size();) {
    if (width_of({columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(c) + 1}) <= screen.width) {
      ++c;
    } else {
      left_out.push_back(columns[c].title);
      columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(c));
    }
  }
  auto out = rows_of(columns, comparison.variants.size(), screen) + "\n" + legend(comparison, summaries, screen);
  if (!left_out.empty()) {
    out += labelled("", 0, fmt::format("Not shown for want of width: {}.", fmt::join(left_out, ", ")), screen.width);
  }
  out += costs_words(columns, screen.width) + straggler_words(comparison, screen.width);
  out += theory_lines(comparison, target, screen);
  for (const auto& run : comparison.runs) {
    if (!run.finished()) out += labelled("", 0, run_words(comparison, run), screen.width);
  }
  return out;
}

}  // namespace trireme::train
