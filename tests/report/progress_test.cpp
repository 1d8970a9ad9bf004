#include "trireme/report/progress.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "trireme/base/text/text.h"

namespace trireme::train {
namespace {

RunHeader header() {
  RunHeader header;
  header.model = "lenet";
  header.parameters = 44426;
  header.data = "fashion-mnist, 60,000 training and 10,000 test samples";
  header.workers = 2;
  header.transport = "shm";
  header.algorithm = "auto";
  header.buckets = "3 buckets (optimal)";
  header.optimizer = "sgd";
  header.out = "runs/lenet-1";
  return header;
}

EpochRow row(int epoch) { return {epoch, 4, 0.5321, "accuracy", "80.31%", "85.20%", 0.05, 12345.6, 9.44}; }

RunSummary summary() {
  RunSummary summary;
  summary.step = {3.2, 4.8, 2.0, 0.5, 0.75, 0.75};
  summary.tests = {{"test accuracy", "89.31%"}};
  summary.train_seconds = 41.23;
  summary.steps = 1876;
  summary.samples_per_second = 11640;
  summary.out = "runs/lenet-1";
  summary.files = {"run.json", "metrics.jsonl", "trace.json", "checkpoints"};
  return summary;
}

Screen terminal(int width, bool unicode = false) {
  Screen screen;
  screen.terminal = true;
  screen.width = width;
  screen.unicode = unicode;
  return screen;
}

// The bar at 45% of the run, 20 s after its start.
std::string bar_at(const Screen& screen) {
  std::ostringstream out;
  Progress progress(out, screen);
  progress.step({1, 4, 0, 100, 0, 2.3}, 100);
  out.str("");
  progress.step({2, 4, 80, 100, 12345.6, 0.4312}, 120);
  return out.str();
}

TEST(Progress, TheBarFitsAnyWidth) {
  EXPECT_EQ(bar_at(terminal(120)),
            "\repoch 2/4  45% [#####################...........................] 12,346 samples/s  loss 0.4312  ETA "
            "0:24\x1b[K");
  EXPECT_EQ(bar_at(terminal(80)),
            "\repoch 2/4  45% [#########.............] 12,346 samples/s  loss 0.4312  ETA 0:24\x1b[K");
  EXPECT_EQ(bar_at(terminal(60)), "\repoch 2/4  45% [####......] 12,346/s  loss 0.4312  ETA 0:24\x1b[K");
  EXPECT_EQ(bar_at(terminal(40)), "\r2/4  45% [###....] 12,346/s 0.4312 0:24\x1b[K");
  EXPECT_EQ(bar_at(terminal(80, true)),
            "\repoch 2/4  45% ━━━━━━━━━━────────────── 12,346 samples/s  loss 0.4312  ETA 0:24\x1b[K");
  for (int width = 20; width < 200; ++width) {
    for (bool unicode : {false, true}) {
      auto line = bar_at(terminal(width, unicode));
      EXPECT_LT(display_width(line.substr(1, line.size() - 4)), width) << line;
    }
  }
}

TEST(Progress, ColorsOnlyWhereTheyAreAllowed) {
  auto screen = terminal(40);
  screen.color = true;
  EXPECT_EQ(bar_at(screen), "\r2/4  45% [\x1b[32m###\x1b[0m\x1b[2m....\x1b[0m] 12,346/s 0.4312 0:24\x1b[K");
}

TEST(Progress, DrawsTenTimesASecondAtMost) {
  std::ostringstream out;
  Progress progress(out, terminal(80));
  for (int i = 0; i <= 1000; ++i) progress.step({1, 1, i, 1000, 1, 1}, 5 + i / 1000.0);
  auto text = out.str();
  auto drawn = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(drawn, 9);
  EXPECT_LE(drawn, 11);
}

TEST(Progress, ARowTakesTheBarsPlace) {
  std::ostringstream out;
  {
    Progress progress(out, terminal(80));
    progress.step({1, 4, 0, 100, 0, 2.3}, 1);
    out.str("");
    progress.epoch(row(1));
    progress.epoch(row(2));
    progress.step({3, 4, 0, 100, 0, 2.3}, 2);
    progress.message("a line\nof two");
    progress.step({3, 4, 1, 100, 0, 2.3}, 3);
  }
  auto text = out.str();
  EXPECT_THAT(
      text, testing::StartsWith("\r\x1b[K"
                                "  epoch  train loss  train acc  test acc        lr  samples/s     time\n"
                                "    1/4      0.5321     80.31%    85.20%      0.05     12,346    9.4 s\n"
                                "    2/4      0.5321     80.31%    85.20%      0.05     12,346    9.4 s\n\repoch 3/4"));
  EXPECT_THAT(text, testing::HasSubstr("\r\x1b[Ka line?of two\n\repoch"));
  EXPECT_THAT(text, testing::EndsWith("\x1b[K\r\x1b[K"));
}

TEST(Progress, NarrowTables) {
  std::ostringstream out;
  Progress progress(out, terminal(40));
  auto without = row(2);
  without.train_metric.reset();
  without.train_loss = std::numeric_limits<double>::quiet_NaN();
  without.seconds = 3725;
  progress.epoch(row(1));
  progress.epoch(without);
  progress.summary(summary());
  EXPECT_EQ(out.str(),
            "  epoch    loss   train    test    time\n"
            "    1/4  0.5321  80.31%  85.20%   9.4 s\n"
            "    2/4     nan       -  85.20% 1:02:05\n"
            "\n"
            "a step, on average            ms  share\n"
            "  forward                  3.200  32.0%\n"
            "  backward                 4.800  48.0%\n"
            "  communication, exposed   0.500   5.0%\n"
            "  optimizer                0.750   7.5%\n"
            "  other                    0.750   7.5%\n"
            "  whole step              10.000 100.0%\n"
            "  communication in all  2.000 ms, of\n"
            "                        which 75.0%\n"
            "                        overlaps with\n"
            "                        computing\n"
            "\n"
            "test accuracy  89.31%\n"
            "training       41.2 s, 1,876 steps,\n"
            "               11,640 samples/s\n"
            "written to     runs/lenet-1: run.json,\n"
            "               metrics.jsonl,\n"
            "               trace.json, checkpoints\n");
}

TEST(Progress, PlainLinesWithoutATerminal) {
  std::ostringstream out;
  {
    Progress progress(out, Screen{});
    progress.header(header());
    for (int i = 0; i <= 250; ++i) progress.step({1, 4, i, 250, 1234.5, 0.75}, 100 + i / 10.0);
    progress.epoch(row(1));
    progress.summary(summary());
  }
  EXPECT_EQ(out.str(),
            "model      lenet, 44,426 parameters\n"
            "data       fashion-mnist, 60,000 training and 10,000 test samples\n"
            "workers    2 processes, 1 thread each, cpu\n"
            "exchange   shm, auto, 3 buckets (optimal)\n"
            "optimizer  sgd\n"
            "out        runs/lenet-1\n"
            "\n"
            "epoch 1/4 10%, 1,234 samples/s, loss 0.7500, ETA 1:30\n"
            "epoch 1/4 20%, 1,234 samples/s, loss 0.7500, ETA 1:20\n"
            "epoch 1/4: train loss 0.5321, train accuracy 80.31%, test accuracy 85.20%, lr 0.05, 12,346 samples/s, "
            "9.4 s\n"
            "\n"
            "a step, on average            ms  share\n"
            "  forward                  3.200  32.0%\n"
            "  backward                 4.800  48.0%\n"
            "  communication, exposed   0.500   5.0%\n"
            "  optimizer                0.750   7.5%\n"
            "  other                    0.750   7.5%\n"
            "  whole step              10.000 100.0%\n"
            "  communication in all  2.000 ms, of which 75.0% overlaps with computing\n"
            "\n"
            "test accuracy  89.31%\n"
            "training       41.2 s, 1,876 steps, 11,640 samples/s\n"
            "written to     runs/lenet-1: run.json, metrics.jsonl, trace.json, checkpoints\n");
}

TEST(Progress, QuietIsOneLineSilentIsNone) {
  for (auto verbosity : {Verbosity::kQuiet, Verbosity::kSilent}) {
    std::ostringstream out;
    Progress progress(out, terminal(80), verbosity);
    progress.header(header());
    progress.step({1, 4, 0, 100, 0, 2.3}, 1);
    progress.epoch(row(1));
    progress.message("nothing");
    progress.summary(summary());
    EXPECT_EQ(out.str(),
              verbosity == Verbosity::kQuiet ? "test accuracy 89.31%, trained for 41.2 s, runs/lenet-1\n" : "");
  }
}

// Also where the name of the folder does not fit beside its label.
TEST(Progress, HeaderMessagesAndSummaryKeepToTheWidth) {
  for (const int width : {40, 60, 80}) {
    std::ostringstream out;
    Progress progress(out, terminal(width));
    auto long_one = header();
    long_one.out = "runs/20261116-085632-lenet-fashion-mnist";
    long_one.strategy = "local-sgd:H=8,outer=nesterov,warmup=0.5";
    long_one.optimizer = "sgd, lr 0.1, one-cycle; because of the strategy or codec momentum 0.5, 2 times the rate";
    progress.header(long_one);
    progress.message("step: predicted 9.03 ms, measured 8.08 ms (-10.5 %), and some more that is said of it");
    auto last = summary();
    last.out = long_one.out;
    progress.summary(last);
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with(':')) line.pop_back();  // of a path as wide as the terminal
      EXPECT_LE(display_width(line), width) << line;
    }
    EXPECT_NE(out.str().find(long_one.out), std::string::npos);
  }
  EXPECT_EQ(labelled("out", 11, "runs/20261116-085632-lenet-fashion-mnist", 40),
            "out\nruns/20261116-085632-lenet-fashion-mnist\n");
  EXPECT_EQ(labelled("out", 11, "runs/20261116-085632-lenet-mnist", 40),
            "out\n        runs/20261116-085632-lenet-mnist\n");
  EXPECT_EQ(labelled("", 4, "abcdefgh i", 6), "abcdefgh\n    i\n");
}

TEST(Progress, MeasuresTextInColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("é"), 1);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("学習"), 4);
  EXPECT_EQ(display_width("━"), 1);
  EXPECT_EQ(display_width("\xff\xc3"), 2);
  EXPECT_EQ(printable("a\tb\x1b[31m\xff é"), "a?b?[31m? é");
  EXPECT_EQ(printable("\xed\xa0\x80\xc0\xaf"), "?????");
  EXPECT_EQ(labelled("out", 5, "学習 学習 x", 12), "out  学習\n     学習 x\n");
  EXPECT_EQ(labelled("out", 5, "", 12), "out  \n");
}

TEST(Progress, WritesNumbersForPeople) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999.4), "999");
  EXPECT_EQ(grouped(1234567.8), "1,234,568");
  EXPECT_EQ(grouped(-1234), "-1,234");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(grouped(INFINITY), "-");
  EXPECT_EQ(per_cent(0.89314), "89.31%");
  EXPECT_EQ(loss_text(12345678.0), "1.23e+07");
  EXPECT_EQ(clock_text(83), "1:23");
  EXPECT_EQ(clock_text(3725), "1:02:05");
  EXPECT_EQ(clock_text(-1), "--:--");
  EXPECT_EQ(clock_text(NAN), "--:--");
  EXPECT_EQ(duration_text(59.94), "59.9 s");
  EXPECT_EQ(duration_text(59.97), "1:00");
}

}  // namespace
}  // namespace trireme::train
