#include "trireme/cli/torch/compare_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "trireme/base/clock.h"
#include "trireme/base/text/text.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::cli {

CompareScreen::CompareScreen(const train::Comparison& comparison, const train::Screen& screen, bool quiet)
    : comparison_(comparison), screen_(screen), quiet_(quiet) {}

train::ComparisonWatch CompareScreen::watch() {
  train::ComparisonWatch watch;
  watch.begins = [this](int number, int of, const std::string& words) { begins(number, of, words); };
  watch.ends = [this](int number, int of, const train::ComparedRun& run) { ends(number, of, run); };
  watch.child.says = [this](std::string_view bytes) { says(bytes); };
  watch.child.goes_on = [this](double seconds) { goes_on(seconds); };
  return watch;
}

void CompareScreen::begins(int number, int of, const std::string& words) {
  at_hand_ = fmt::format("{}/{} {}", number, of, printable(words));
  left_ = of - number;
  began_ = now_seconds();
  shown_seconds_ = -1;
  goes_on(0);
}

void CompareScreen::goes_on(double seconds) {
  auto whole = static_cast<int>(seconds);
  if (quiet_ || !screen_.terminal || whole == shown_seconds_) return;
  shown_seconds_ = whole;
  auto line = fmt::format("{} {} {}", at_hand_, screen_.unicode ? "…" : "...", clock_text(seconds));
  if (ran_ > 0) {
    double mean = seconds_ / ran_;
    line += fmt::format(", about {} left", clock_text(std::max(0.0, mean - seconds) + mean * left_));
  }
  if (display_width(line) >= screen_.width) line = at_hand_.substr(0, at_hand_.find(' '));
  clear();
  fmt::print(stderr, "{}", line);
  std::fflush(stderr);
  drawn_ = true;
}

void CompareScreen::says(std::string_view bytes) {
  clear();
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

void CompareScreen::ends(int number, int of, const train::ComparedRun& run) {
  ++ran_;
  seconds_ += now_seconds() - began_;
  if (quiet_) return;
  clear();
  fmt::print(stderr, "{}/{} {}\n", number, of, train::run_words(comparison_, run));
}

void CompareScreen::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace trireme::cli
