#include "trireme/report/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "trireme/base/text/text.h"

namespace trireme::train {
namespace {

constexpr int kIndent = 11;
constexpr int kWidestBar = 50;
constexpr double kRedraw = 0.1, kPlainLine = 10;  // seconds
constexpr std::string_view kBold = "1", kDim = "2", kGreen = "32";

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int width_of(int descriptor) {
  int width = 0;
  auto columns = environment("COLUMNS");
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  winsize size{};
  if (width <= 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width > 0 ? std::clamp(width, 20, 400) : 80;
}

bool locale_is_utf8() {
  for (auto name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::toupper(c); });
    return value.find("UTF-8") != std::string::npos || value.find("UTF8") != std::string::npos;
  }
  return false;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(static_cast<double>(count)), count == 1 ? one : many);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (auto& part : parts) {
    if (!part.empty()) all += (all.empty() ? "" : ", ") + part;
  }
  return all;
}

std::string singular(const std::string& launch) { return launch.ends_with("sses") ? "process" : "thread"; }

double share_of(const StepProgress& at) {
  double epoch = at.steps > 0 ? static_cast<double>(at.step) / static_cast<double>(at.steps) : 1;
  return at.epochs > 0 ? std::clamp((at.epoch - 1 + epoch) / at.epochs, 0.0, 1.0) : 1;
}

}  // namespace

Screen screen_of(int descriptor) {
  Screen screen;
  screen.unicode = locale_is_utf8();
  auto term = environment("TERM");
  if (::isatty(descriptor) != 1 || term == "dumb") return screen;
  screen.terminal = true;
  screen.color = environment("NO_COLOR").empty();
  screen.descriptor = descriptor;
  screen.width = width_of(descriptor);
  return screen;
}

Progress::Progress(std::ostream& out, const Screen& screen, Verbosity verbosity)
    : out_(out), screen_(screen), verbosity_(verbosity) {}

Progress::~Progress() { clear_bar(); }

void Progress::clear_bar() {
  if (std::exchange(bar_shown_, false)) out_ << "\r\x1b[K" << std::flush;
}

std::string Progress::styled(std::string_view code, std::string_view text) const {
  return screen_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

void Progress::header(const RunHeader& header) {
  if (verbosity_ != Verbosity::kNormal) return;
  auto line = [&](std::string_view label, const std::string& text) {
    if (!text.empty()) {
      auto whole = labelled(label, kIndent, text, screen_.width);
      out_ << styled(kDim, whole.substr(0, label.size())) << whole.substr(label.size());
    }
  };
  auto one = singular(header.launch);
  line("model", joined({header.model, header.parameters == 0 ? ""
                                                             : counted(static_cast<std::int64_t>(header.parameters),
                                                                       "parameter", "parameters")}));
  line("data", header.data);
  line("workers",
       joined({counted(header.workers, one, header.launch),
               counted(header.threads, "thread", "threads") + (header.workers > 1 ? " each" : ""), header.device}));
  line("mesh", header.mesh);
  line("strategy", header.strategy);
  line("codec", header.compress);
  line("exchange", joined({header.transport, header.algorithm, header.buckets}));
  line("loss", header.loss);
  line("optimizer", header.optimizer);
  line("out", header.out);
  out_ << "\n" << std::flush;
}

void Progress::step(const StepProgress& progress, double now) {
  if (verbosity_ != Verbosity::kNormal) return;
  double share = share_of(progress);
  if (first_ < 0) {
    first_ = now;
    first_share_ = share;
    last_ = screen_.terminal ? now - 1 : now;
  }
  if (now - last_ < (screen_.terminal ? kRedraw : kPlainLine)) return;
  last_ = now;
  double done = share - first_share_;
  double eta = done > 0 ? (now - first_) * (1 - share) / done : -1;
  if (!screen_.terminal) {
    out_ << fmt::format("epoch {}/{} {:.0f}%, {} samples/s, loss {}, ETA {}\n", progress.epoch, progress.epochs,
                        100 * share, grouped(progress.samples_per_second), loss_text(progress.loss), clock_text(eta))
         << std::flush;
    return;
  }
  if (screen_.descriptor >= 0) screen_.width = width_of(screen_.descriptor);
  out_ << "\r" << bar_line(progress, eta) << "\x1b[K" << std::flush;
  bar_shown_ = true;
}

// All that fits, with as many words as fit; the last column stays free, where some terminals wrap.
std::string Progress::bar_line(const StepProgress& at, double eta) const {
  double share = share_of(at);
  auto epoch = fmt::format("{}/{} {:3.0f}%", at.epoch, at.epochs, std::floor(100 * share));
  auto rate = grouped(at.samples_per_second), loss = loss_text(at.loss), left = clock_text(eta);
  struct Layout {
    std::string before, after;
    int fewest_cells;
  };
  const Layout layouts[] = {{"epoch " + epoch, fmt::format("{} samples/s  loss {}  ETA {}", rate, loss, left), 15},
                            {"epoch " + epoch, fmt::format("{}/s  loss {}  ETA {}", rate, loss, left), 10},
                            {epoch, fmt::format("{}/s {} {}", rate, loss, left), 3},
                            {epoch, fmt::format("{} {}", loss, left), 0}};
  for (auto& [before, after, fewest] : layouts) {
    int cells = screen_.width - 1 - static_cast<int>(before.size() + after.size()) - 2;
    if (cells >= fewest) return fmt::format("{} {} {}", before, bar(std::min(cells, kWidestBar), share), after);
  }
  return epoch.substr(0, std::max(0, screen_.width - 1));
}

std::string Progress::bar(int cells, double share) const {
  if (cells < 3) return "";
  int inner = screen_.unicode ? cells : cells - 2;
  int full = static_cast<int>(share * inner + 1e-9);
  std::string done, rest;
  for (int i = 0; i < inner; ++i)
    (i < full ? done : rest) += screen_.unicode ? (i < full ? "━" : "─") : (i < full ? "#" : ".");
  auto model = (done.empty() ? "" : styled(kGreen, done)) + (rest.empty() ? "" : styled(kDim, rest));
  return screen_.unicode ? model : "[" + model + "]";
}

void Progress::epoch(const EpochRow& row) {
  if (verbosity_ != Verbosity::kNormal) return;
  clear_bar();
  if (!screen_.terminal) {
    out_ << epoch_sentence(row) << std::flush;
    return;
  }
  if (!std::exchange(heading_shown_, true)) {
    auto heading = epoch_heading(screen_.width, row.metric);
    heading.pop_back();
    out_ << styled(kDim, heading) << "\n";
  }
  out_ << epoch_cells(row, screen_.width) << std::flush;
}

void Progress::message(std::string_view line) {
  if (verbosity_ != Verbosity::kNormal) return;
  clear_bar();
  if (screen_.terminal) {
    out_ << labelled("", 0, line, screen_.width) << std::flush;
  } else {
    out_ << printable(line) << "\n" << std::flush;
  }
}

void Progress::table(std::string_view lines) {
  if (verbosity_ != Verbosity::kNormal) return;
  clear_bar();
  out_ << "\n" << lines << std::flush;
}

void Progress::summary(const RunSummary& summary) {
  if (verbosity_ == Verbosity::kSilent) return;
  clear_bar();
  if (verbosity_ == Verbosity::kQuiet) {
    std::vector<std::string> words;
    for (const auto& [name, value] : summary.tests) words.push_back(name + " " + value);
    words.insert(words.end(), {"trained for " + duration_text(summary.train_seconds), printable(summary.out)});
    out_ << joined(words) << "\n" << std::flush;
    return;
  }
  constexpr int kSummaryIndent = 15;
  out_ << "\n" << breakdown_table(summary.step, screen_.width) << "\n";
  for (const auto& [name, value] : summary.tests) {
    out_ << fmt::format("{:<{}}", name + "  ", kSummaryIndent) << styled(kBold, value) << "\n";
  }
  const auto rate = grouped(summary.samples_per_second) + " samples/s";
  const auto steps = counted(summary.steps, "step", "steps");
  const auto all = summary.resumed
                       ? joined({duration_text(summary.train_seconds), steps + " in all",
                                 fmt::format("{} of them now at {}", summary.steps - *summary.resumed, rate)})
                       : joined({duration_text(summary.train_seconds), steps, rate});
  out_ << labelled("training", kSummaryIndent, all, screen_.width);
  if (!summary.out.empty()) {
    auto files = joined(summary.files);
    out_ << labelled("written to", kSummaryIndent, summary.out + (files.empty() ? "" : ": " + files), screen_.width);
  }
  out_ << std::flush;
}

}  // namespace trireme::train
