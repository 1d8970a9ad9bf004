#include "trireme/report/run_file.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"

namespace trireme::train {
namespace {

using Json = nlohmann::json;

TEST(RunFile, ReturnsWhatItWasGiven) {
  ScratchFolder folder;
  auto path = folder / "run.json";
  Json run{{"config", {{"model", "lenet"}, {"lr", 0.05}}}, {"summary", {{"test_accuracy", 0.9}}}};
  write_run_file(path, run);
  EXPECT_EQ(read_run_file(path), run);
  EXPECT_EQ(content(path).back(), '\n');
  put(path, "{\"a\":");
  EXPECT_THAT(message_of<DataError>([&] { read_run_file(path); }),
              testing::EndsWith("run.json:1: no valid JSON at byte 6"));
  put(path, "[]");
  EXPECT_THAT(message_of<DataError>([&] { read_run_file(path); }), testing::EndsWith("run.json: no JSON object"));
  EXPECT_THAT(message_of<DataError>([&] { read_run_file(folder / "no"); }), testing::HasSubstr("No such file"));
}

}  // namespace
}  // namespace trireme::train
