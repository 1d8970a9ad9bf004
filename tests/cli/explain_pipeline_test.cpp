#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/outcome.h"
#include "trireme/mesh/schedule.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::refuses;
using test::run_trireme;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainPipelineCommand, DrawsTheChart) {
  auto outcome = run_trireme("explain pipeline:1f1b --stages 4 --micro-batches 8");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("1f1b on 4 stages with 8 micro-batches"));
  EXPECT_THAT(outcome.text,
              HasSubstr("stage 3   ······0─0━━━1─1━━━2─2━━━3─3━━━4─4━━━5─5━━━6─6━━━7─7━━━············\n"));
  EXPECT_THAT(outcome.text, HasSubstr("(S−1)/(M+S−1) = 27.27 %"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("\033")));
}

TEST(ExplainPipelineCommand, GivesJson) {
  for (const auto& kind : pipelines::kinds()) {
    auto outcome = run_trireme(fmt::format("explain pipeline:{} --stages 3 --micro-batches 6 --json", kind.name));
    ASSERT_EQ(outcome.code, 0) << kind.name;
    json answer = json::parse(outcome.text);
    EXPECT_EQ(answer["pipeline"], std::string(kind.name));
    EXPECT_EQ(answer["actions"].size(), 3u);
    EXPECT_NEAR(answer["bubble"].get<double>(), answer["bubble_formula"].get<double>(), 1e-9);
    EXPECT_EQ(answer["held"].size(), 3u);
  }
  auto slow = json::parse(run_trireme("explain pipeline:zero-bubble --forward 2 --backward 10 --json").text);
  EXPECT_TRUE(slow["bubble_formula"].is_null());
}

TEST(ExplainPipelineCommand, WritesAPage) {
  auto path = std::filesystem::temp_directory_path() / fmt::format("explain_pipeline_test_{}.html", getpid());
  auto outcome = run_trireme(fmt::format("explain pipeline:interleaved --chunks 3 --html {}", path.string()));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.text, HasSubstr("open it in a browser"));
  std::ifstream file(path);
  std::string page((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(page, HasSubstr("<title>interleaved on 4 stages of 3 chunks with 8 micro-batches</title>"));
  std::filesystem::remove(path);
}

TEST(ExplainPipelineCommand, RefusesBadInputInOneLine) {
  for (const char* arguments :
       {"pipeline:", "pipeline:2f2b", "pipeline:1f1b --stages 0", "pipeline:1f1b --stages x",
        "pipeline:1f1b --micro-batches 0", "pipeline:1f1b --chunks 2", "pipeline:interleaved --chunks 0",
        "pipeline:1f1b --forward 0", "pipeline:1f1b --backward -1", "pipeline:1f1b --ranks 4",
        "pipeline:1f1b --transport tcp", "pipeline:1f1b --html x.html --json", "ring --stages 4", "ring --json",
        "auto --micro-batches 2", "pipeline:gpipe --stages 256 --micro-batches 4096 --html /dev/null"}) {
    EXPECT_TRUE(refuses(std::string("explain ") + arguments))
        << arguments << "\n"
        << run_trireme(std::string("explain ") + arguments + " 2>&1").text;
  }
  EXPECT_THAT(run_trireme("explain pipeline:2f2b 2>&1").text,
              HasSubstr("there are: gpipe, 1f1b, interleaved, zero-bubble, pipedream"));
  EXPECT_THAT(run_trireme("explain ringo 2>&1").text, HasSubstr("pipeline:1f1b"));
}

}  // namespace
}  // namespace trireme
