#include "trireme/report/trace_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/train/scratch_folder.h"

namespace trireme::train {
namespace {

using Json = nlohmann::json;

TEST(TraceFile, APerRankProcessAndAThreadPerLane) {
  ScratchFolder folder;
  auto path = folder / "trace.json";
  write_trace(path,
              std::vector<TraceEvent>{
                  {"forward", "compute", 1, "compute", 100.5, 0.25, {}},
                  {"bucket \"0\"", "communication", 1, "communication", 100.25, 0.001, {{"bytes", 4096}, {"x", NAN}}},
                  {"load", "data", 0, "data", 101, 0.5, {}}});
  auto trace = Json::parse(content(path));
  std::vector<Json> spans;
  std::map<std::pair<int, int>, std::string> lanes;
  std::map<int, std::string> ranks;
  for (auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") spans.push_back(event);
    if (event.at("name") == "process_name") ranks[event.at("pid")] = event.at("args").at("name");
    if (event.at("name") == "thread_name") lanes[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
  }
  EXPECT_EQ(ranks, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}}));
  ASSERT_EQ(spans.size(), 3);
  const double begin[] = {250000, 0, 750000}, duration[] = {250000, 1000, 500000};
  const char* lane[] = {"compute", "communication", "data"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_DOUBLE_EQ(spans[i].at("ts"), begin[i]);
    EXPECT_DOUBLE_EQ(spans[i].at("dur"), duration[i]);
    EXPECT_EQ((lanes.at({spans[i].at("pid"), spans[i].at("tid")})), lane[i]);
  }
  EXPECT_EQ(spans[1].at("name"), "bucket \"0\"");
  EXPECT_EQ(spans[1].at("cat"), "communication");
  EXPECT_EQ(spans[1].at("args"), (Json{{"bytes", 4096}, {"x", nullptr}}));
}

TEST(TraceFile, ManyEventsAndNone) {
  ScratchFolder folder;
  write_trace(folder / "none.json", {});
  EXPECT_TRUE(Json::parse(content(folder / "none.json")).at("traceEvents").empty());
  std::vector<TraceEvent> events(30'000, {"step", "compute", 3, "compute", 0, 1e-6, {{"step", 1}}});
  write_trace(folder / "many.json", events);
  EXPECT_EQ(Json::parse(content(folder / "many.json")).at("traceEvents").size(), 30'000 + 6);
  EXPECT_EQ(folder.files(), 2);
}

}  // namespace
}  // namespace trireme::train
