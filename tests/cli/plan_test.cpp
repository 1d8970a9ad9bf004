#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/outcome.h"
#include "trireme/base/text/text.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/cluster/profile/profile.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::run_trireme;
using ::testing::HasSubstr;

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() {
    std::string name = (std::filesystem::temp_directory_path() / "trireme-plan-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    cluster::save_profile(cluster::example_profile("tiny"), file("profile.json"));
  }
  ~PlanCommand() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  // A small question about the example of eight machines.
  std::string asked(const std::string& more) const {
    return fmt::format("plan --profile {} --cluster {}/examples/clusters/eight-1gbit.toml --steps 2 {}",
                       file("profile.json"), TRIREME_SOURCE_DIR, more);
  }
  std::filesystem::path folder_;
};

TEST_F(PlanCommand, PrintsARankedTableThatFits) {
  const auto outcome =
      run_trireme(asked("--workers 2,8 --strategies allreduce,local-sgd:H=4 --codecs none,topk:0.01 --top 4"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* word : {"samples/s", "memory", "sent/step", "local-sgd", "plans considered", "left out"}) {
    EXPECT_THAT(outcome.text, HasSubstr(word));
  }
  std::istringstream lines(outcome.text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100) << line;
}

TEST_F(PlanCommand, WritesWhatTrainReads) {
  const auto path = file("plan.json");
  const auto outcome = run_trireme(asked("--workers 4 --strategies allreduce --codecs none --json -o " + path));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const auto said = json::parse(outcome.text);
  const auto read = cluster::load_plan(path);
  EXPECT_EQ(read.objective, "step");
  EXPECT_EQ(said["options"][0]["settings"], json::parse(cluster::to_json(read.chosen)["settings"].dump()));
  EXPECT_EQ(said["options"].size(), 1 + read.alternatives.size());
  EXPECT_GT(read.predicted.step_ms, 0);
  double before = 1e300;
  for (const auto& option : said["options"]) {
    EXPECT_LE(option["samples_per_s"], before);
    before = option["samples_per_s"];
  }
}

TEST_F(PlanCommand, RefusesInOneLine) {
  auto refuses = [](const std::string& arguments, int code, const std::string& word) {
    const auto outcome = run_trireme(arguments + " 2>&1");
    EXPECT_EQ(outcome.code, code) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(word));
    EXPECT_EQ(outcome.text.find('\n'), outcome.text.size() - 1) << outcome.text;
  };
  refuses(asked("--objective speed"), 2, "not one of: step, accuracy, cost");
  refuses(asked("--strategies alreduce"), 2, "allreduce");
  refuses(asked("--frobnicate"), 2, "--frobnicate");
  refuses(asked("--lanes 65"), 2, "--lanes");
  refuses(asked("--memory 0"), 2, "--memory");
  refuses(asked("-o /nowhere/plan.json"), 1, "cannot write /nowhere/plan.json: No such file or directory");
  refuses(asked("--no-mesh --strategies hogwild --codecs topk:0.01"), 2, "codecs that a strategy cannot send");
  refuses(asked("--model lenet"), 2, "either --profile FILE or --model NAME");
  refuses("plan --cluster nowhere.toml --profile " + file("profile.json"), 7, "nowhere.toml");
  std::ofstream(file("broken.json")) << "{\n\"format\": 3}";
  refuses(fmt::format("plan --profile {} --cluster {}/examples/clusters/eight-1gbit.toml", file("broken.json"),
                      TRIREME_SOURCE_DIR),
          7, "broken.json");
}

}  // namespace
}  // namespace trireme
