#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/cli/help_lines.h"
#include "tests/cli/outcome.h"
#include "tests/sanitized.h"
#include "trireme/base/text/text.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Overview, SaysWhatThisHostIsAndWhatToTry) {
  const auto outcome = run_trireme("2>&1");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("\nhost      "));
  EXPECT_THAT(outcome.text, testing::ContainsRegex("[0-9]+ cores?, [0-9.]+ GiB of memory"));
  EXPECT_THAT(outcome.text, HasSubstr("GPU"));
  EXPECT_THAT(outcome.text, HasSubstr("\nruns      "));
  std::size_t examples = 0;
  for (std::size_t at = 0; (at = outcome.text.find("\n  trireme ", at)) != std::string::npos; ++at) ++examples;
  EXPECT_EQ(examples, 5U);
  EXPECT_THAT(outcome.text, HasSubstr("trireme --help"));
}

TEST(Overview, NamesTheCommandThatWasTyped) {
  EXPECT_THAT(output_of(std::string("TRIREME_COMMAND=./trireme ") + TRIREME_PROGRAM),
              HasSubstr("\n  ./trireme train "));
}

TEST(Overview, KeepsToTheWidth) {
  for (const int width : {40, 80, 120}) {
    std::istringstream lines(output_of("COLUMNS=" + std::to_string(width) + " " + TRIREME_PROGRAM));
    for (std::string line; std::getline(lines, line);) {
      const auto word = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      const bool one_word = word.find(' ') == word.npos;
      EXPECT_TRUE(one_word || display_width(line) <= width) << line;
    }
  }
}

// The best of several: a busy machine makes some of them slow.
TEST(Overview, AnswersInATenthOfASecond) {
  double best = 1e9;
  for (int k = 0; k < 10; ++k) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(run_trireme("> /dev/null").code, 0);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  EXPECT_LT(best, kSanitized ? 2 : 0.1);
}

TEST(Overview, LoadsNoLibTorch) {
  const auto loaded = output_of(std::string("LD_TRACE_LOADED_OBJECTS=1 ") + TRIREME_PROGRAM);
  EXPECT_THAT(loaded, HasSubstr("libc.so"));
  EXPECT_THAT(loaded, Not(HasSubstr("torch")));
}

TEST(Overview, ShowsTheLastRunOfThisFolder) {
  const auto folder = std::filesystem::temp_directory_path() / ("overview-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "runs/a");
  std::ofstream(folder / "runs/a/run.json")
      << R"({"status": "done", "config": {"model": {"name": "lenet"}, "data": {"name": "mnist"}, "run": {"workers": 2}}})";
  const auto text = output_of("cd " + folder.string() + " && COLUMNS=120 " + TRIREME_PROGRAM);
  std::ofstream(folder / "runs/a/run.json") << "{{{";
  const auto broken = run_trireme("2>&1");
  std::filesystem::remove_all(folder);
  if (text.find("none of yours under way") != text.npos) {  // another test may train beside us
    EXPECT_THAT(text, HasSubstr("lenet on mnist, 2 workers, done, runs/a"));
  }
  EXPECT_EQ(broken.code, 0);
}

}  // namespace
}  // namespace trireme::test
