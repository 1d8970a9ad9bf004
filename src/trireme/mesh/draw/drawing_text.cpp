// A timed pipeline schedule for the terminal: a row for each stage, time to the right.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/mesh/checker.h"
#include "trireme/mesh/draw/drawing.h"

namespace trireme::pipelines {
namespace {

using enum Action::Kind;

constexpr std::size_t kMargin = 10;  // "stage 12  "
constexpr int kMostColumns = 6;      // for the shortest computation
constexpr std::size_t kBandsShown = 8;

// How a computation is drawn: a number, then a line as long as it takes.
struct Stroke {
  const char* line;
  const char* color;  // of the terminal
};
Stroke stroke_of(Action::Kind kind) {
  if (kind == forward) return {"─", "34"};
  return kind == backward ? Stroke{"━", "32"} : Stroke{"┄", "33"};
}

class Chart {
 public:
  Chart(const Picture& picture, const TextStyle& style) : picture_(picture), style_(style) {
    double shortest = picture.timing.makespan_s;
    std::size_t label = 1;
    for (const auto& actions : picture.timing.actions) {
      for (const Timed& timed : actions) {
        double seconds = timed.end_s - timed.begin_s;
        if (!computes(timed.action) || seconds <= 0) continue;
        shortest = std::min(shortest, seconds);
        label = std::max(label, label_of(timed.action).size());
      }
    }
    // As wide as fits, but so that the shortest shows its number and a line; what is then too wide goes on below.
    room_ = std::max<std::size_t>(20, static_cast<std::size_t>(std::max(style.width, 0)) - kMargin);
    double whole = picture.timing.makespan_s / shortest;
    double fits = std::floor(static_cast<double>(room_) / whole);
    scale_ = std::clamp(fits, label + 1.0, std::max(label + 1.0, double{kMostColumns})) / shortest;
    columns_ = static_cast<std::size_t>(std::llround(picture.timing.makespan_s * scale_));
  }

  std::string draw() {
    std::vector<std::vector<Cell>> rows;
    for (std::size_t stage = 0; stage < picture_.timing.actions.size(); ++stage) rows.push_back(row(stage));
    std::size_t bands = (columns_ + room_ - 1) / room_;
    std::string out;
    for (std::size_t band = 0; band < bands; ++band) {
      if (!style_.full && bands > kBandsShown && band == kBandsShown * 3 / 4) {
        std::size_t rest = bands - kBandsShown / 4;
        out += fmt::format("… {} more rows like these (--full shows them) …\n\n", rest - band);
        band = rest;
      }
      for (std::size_t stage = 0; stage < rows.size(); ++stage) {
        out += fmt::format("{:<{}}", fmt::format("stage {}", stage), kMargin) + cells(rows[stage], band) + "\n";
      }
      out += ruler(band) + "\n";
    }
    return out;
  }

 private:
  struct Cell {
    std::string text = "·";
    const char* color = nullptr;
  };

  std::string label_of(const Action& action) const {
    std::string chunk = picture_.schedule.chunks > 1 ? std::string(1, static_cast<char>('a' + action.chunk % 26)) : "";
    return std::to_string(action.micro_batch) + chunk;
  }

  std::vector<Cell> row(std::size_t stage) const {
    std::vector<Cell> cells(columns_);
    for (const Timed& timed : picture_.timing.actions[stage]) {
      if (!computes(timed.action)) continue;
      auto begin = static_cast<std::size_t>(std::llround(timed.begin_s * scale_));
      auto end = std::min(columns_, static_cast<std::size_t>(std::llround(timed.end_s * scale_)));
      std::string label = label_of(timed.action);
      Stroke stroke = stroke_of(timed.action.kind);
      for (std::size_t at = begin; at < end; ++at) {
        bool written = at - begin < label.size() && label.size() <= end - begin;
        cells[at] = {written ? std::string(1, label[at - begin]) : stroke.line, stroke.color};
      }
    }
    return cells;
  }

  std::string cells(const std::vector<Cell>& row, std::size_t band) const {
    std::string out;
    const char* color = nullptr;
    for (std::size_t at = band * room_; at < std::min((band + 1) * room_, row.size()); ++at) {
      if (style_.color && row[at].color != color) {
        color = row[at].color;
        out += color ? fmt::format("\x1b[0;{}m", color) : "\x1b[0;2m";
      }
      out += row[at].text;
    }
    return style_.color ? out + "\x1b[0m" : out;
  }

  // Times under the chart, so far apart that they do not touch.
  std::string ruler(std::size_t band) const {
    double step = 1;
    for (int turn = 0; step * scale_ < 10; ++turn) step *= turn % 2 == 0 ? 5 : 2;
    std::string line(kMargin + room_ + 12, ' ');
    for (double time = 0; time * scale_ <= static_cast<double>(columns_); time += step) {
      auto at = static_cast<std::size_t>(std::llround(time * scale_));
      if (at < band * room_ || at >= (band + 1) * room_) continue;
      std::string text = fmt::format("|{:g}", time);
      line.replace(kMargin + at - band * room_, text.size(), text);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

  const Picture& picture_;
  const TextStyle& style_;
  std::size_t room_ = 0, columns_ = 0;
  double scale_ = 1;  // columns for a unit of time
};

std::string key_of(const Schedule& schedule) {
  std::string text = "0── forward   0━━ backward";
  if (schedule.splits_backward) text = "0── forward   0━━ backward, of inputs   0┄┄ of weights";
  text += "   ··· idle";
  text += schedule.chunks > 1 ? "; 0a is micro-batch 0 in the stage's first chunk" : "; 0 is micro-batch 0";
  return text;
}

std::string table_of(const Picture& picture) {
  auto held = most_held(picture.schedule);
  std::string text = fmt::format("{:<10}{:>8}{:>8}{:>8}{:>8}\n", "", "busy", "idle", "bubble", "held");
  for (int stage = 0; stage < picture.schedule.stages; ++stage) {
    double idle = picture.timing.idle_s[stage], all = picture.timing.makespan_s;
    text += fmt::format("{:<10}{:>8.4g}{:>8.4g}{:>7.1f}%{:>8}\n", fmt::format("stage {}", stage),
                        picture.timing.busy_s[stage], std::max(idle, 0.0),
                        all > 0 ? 100 * std::max(idle, 0.0) / all : 0, held[stage]);
  }
  return text;
}

}  // namespace

std::string draw_text(const Picture& picture, const TextStyle& style) {
  std::string title = title_of(picture);
  if (style.color) title = "\x1b[1m" + title + "\x1b[0m";
  std::string out = title + "\n" + std::string(find_kind(picture.schedule.name).summary) + "\n\n" +
                    key_of(picture.schedule) + "\n\n" + Chart(picture, style).draw() + "\n" + table_of(picture) + "\n";
  for (const auto& [label, value] : facts_of(picture)) out += fmt::format("{:<10}{}\n", label, value);
  return out;
}

}  // namespace trireme::pipelines
