#include "trireme/cli/bench/kept.h"

#include <gtest/gtest.h>

#include <fstream>

#include "trireme/base/error.h"
#include "trireme/cli/bench/rank_group.h"

namespace trireme::bench {
namespace {

const Kept::Key kFirst{"2 workers, this host, mlp", "round 1", "allreduce none"};
const Kept::Key kSecond{"2 workers, this host, mlp", "round 1", "allreduce int8"};

void append(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

TEST(Kept, GoesOnFromItsFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/kept.jsonl";
  Kept(path).add(kFirst, {0.1, 0.2, 0.3, 0.4});
  Kept again(path);
  again.add(kSecond, {1, 2, 3, 4});
  EXPECT_EQ(again.find({kFirst.group, "round 2", kFirst.way}), nullptr);
  const Kept both(path);
  ASSERT_NE(both.find(kFirst), nullptr);
  EXPECT_EQ(both.find(kFirst)->predicted_s, 0.1);
  EXPECT_EQ(both.find(kFirst)->measured_s, 0.2);
  EXPECT_EQ(both.find(kFirst)->alone_s, 0.3);
  EXPECT_EQ(both.find(kFirst)->planned_s, 0.4);
  ASSERT_NE(both.find(kSecond), nullptr);
}

TEST(Kept, NeedsNoFile) {
  Kept kept;
  EXPECT_EQ(kept.find(kFirst), nullptr);
  kept.add(kFirst, {0.1, 0.2, 0.3, 0.4});
  EXPECT_NE(kept.find(kFirst), nullptr);
}

TEST(Kept, ForgetsALineThatWasCutOff) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/kept.jsonl";
  Kept(path).add(kFirst, {0.1, 0.2, 0.3, 0.4});
  append(path, R"({"group":"2 work)");
  Kept(path).add(kSecond, {1, 2, 3, 4});
  const Kept both(path);
  EXPECT_NE(both.find(kFirst), nullptr);
  EXPECT_NE(both.find(kSecond), nullptr);
}

TEST(Kept, SaysWhichLineIsSomethingElse) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/kept.jsonl";
  Kept(path).add(kFirst, {0.1, 0.2, 0.3, 0.4});
  append(path, R"({"group":"a","round":"b","way":"c","predicted_s":1,"measured_s":0,"alone_s":1,"planned_s":1})"
               "\n");
  try {
    const Kept kept(path);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(path + ":2: a line of")) << error.what();
  }
  EXPECT_THROW(Kept(folder.path() + "/none/kept.jsonl"), ConfigError);
}

}  // namespace
}  // namespace trireme::bench
