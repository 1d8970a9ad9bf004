#include "trireme/cluster/diff/difference.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/cluster/diff/trace_shares.h"

namespace trireme::cluster {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DifferenceFiles : public ::testing::Test {
 protected:
  DifferenceFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "trireme-diff-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~DifferenceFiles() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string write(const std::string& name, const Json& json) const { return write(name, json.dump(1)); }
  std::filesystem::path folder_;
};

Json breakdown(double forward, double backward, double communication, double exposed, double optimizer, double other) {
  return {{"forward", forward},
          {"backward", backward},
          {"communication", communication},
          {"exposed", exposed},
          {"optimizer", optimizer},
          {"other", other},
          {"step", forward + backward + exposed + optimizer + other}};
}
Json workers(std::initializer_list<double> compute_s) {
  Json list = Json::array();
  for (double seconds : compute_s) list.push_back({{"steps", 10}, {"compute_s", seconds}, {"wait_s", 0.0}});
  return list;
}
Json prediction() {
  return {{"breakdown_ms", breakdown(30, 60, 40, 20, 5, 0)},
          {"exchange_ms", {{"latency", 8}, {"bandwidth", 24}, {"queueing", 4}, {"waiting", 4}, {"coding", 0}}},
          {"workers", workers({0.95, 0.95})},
          {"bytes_sent", 4e7},
          {"strategy", "allreduce"},
          {"compress", "none"}};
}
Json run(const Json& parts) {
  return {{"status", "done"},
          {"config", Json::object()},
          {"summary",
           {{"breakdown_ms", parts},
            {"workers", workers({0.95, 0.95})},
            {"steps", 10},
            {"bytes_sent", 4e7},
            {"strategy", "allreduce"},
            {"compress", "none"}}}};
}
// Two ranks, one step: two buckets; rank 0 comes `late` ms early to each.
Json trace(double alpha, double per_mb, double early, double queued) {
  Json events = Json::array();
  events.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", 0}, {"args", {{"name", "rank 0"}}}});
  for (int rank : {0, 1}) {
    events.push_back({{"ph", "X"}, {"name", "forward"}, {"dur", 30e3}, {"args", {{"step", 11}}}});
    for (int bucket : {0, 1}) {
      const double mb = bucket == 0 ? 1 : 3;
      const double ms = alpha + per_mb * mb + (rank == 0 ? early : 0);
      events.push_back({{"ph", "X"},
                        {"name", fmt::format("bucket {}", bucket)},
                        {"pid", rank},
                        {"dur", ms * 1e3},
                        {"args", {{"bytes", mb * 1e6}, {"waited_ms", bucket == 1 ? queued : 0}, {"step", 11}}}});
    }
  }
  return {{"traceEvents", events}};
}
const Difference::Class& find(const Difference& difference, std::string_view name) {
  return *std::ranges::find(difference.classes, name, &Difference::Class::name);
}
double sum(const Difference& difference) {
  double ms = 0;
  for (const auto& one : difference.classes) ms += one.ms();
  return ms;
}

TEST_F(DifferenceFiles, SlowerComputeIsNamed) {
  const auto predicted = write("predicted.json", prediction());
  const auto measured = write("run.json", run(breakdown(40, 75, 40, 20, 5, 1)));
  const auto difference = compare(load_account(predicted), load_account(measured));
  EXPECT_DOUBLE_EQ(difference.predicted_ms, 115);
  EXPECT_DOUBLE_EQ(difference.measured_ms, 141);
  EXPECT_DOUBLE_EQ(find(difference, "compute").ms(), 25);
  EXPECT_DOUBLE_EQ(find(difference, "other").ms(), 1);
  for (auto name : {"latency", "bandwidth", "queueing", "waiting"})
    EXPECT_NEAR(find(difference, name).ms(), 0, 1e-9) << name;
  EXPECT_THAT(difference.verdict,
              HasSubstr("26.000 ms more than predicted (18.4 %); most of it is compute: +25.000 ms"));
  EXPECT_NEAR(sum(difference), difference.ms(), 1e-9);
}

TEST_F(DifferenceFiles, TheTraceTellsLatencyFromBandwidth) {
  write("trace.json", trace(4, 6, 2, 4));
  const auto shares = load_account(write("run.json", run(breakdown(30, 60, 40, 20, 5, 0)))).exchange;
  ASSERT_TRUE(shares);
  EXPECT_NEAR(shares->latency, 8, 1e-9);
  EXPECT_NEAR(shares->bandwidth, 24, 1e-9);
  EXPECT_NEAR(shares->waiting, 2, 1e-9);  // of two ranks, one waits 2 ms for each bucket
  EXPECT_NEAR(shares->queueing, 4, 1e-9);
}

TEST_F(DifferenceFiles, EachClassOfTheExchangeIsFound) {
  struct Case {
    const char* name;
    double alpha, per_mb, early, queued;
  };
  // Where nothing differs the trace gives 8, 24, 4 and 4 ms; all of it is exposed here.
  const auto predicted = [&] {
    Json json = prediction();
    json["breakdown_ms"] = breakdown(30, 60, 40, 40, 5, 0);
    return write("predicted.json", json);
  }();
  for (const Case& one : {Case{"latency", 9, 6, 4, 4}, Case{"bandwidth", 4, 9, 4, 4}, Case{"queueing", 4, 6, 4, 14},
                          Case{"waiting", 4, 6, 14, 4}}) {
    write("trace.json", trace(one.alpha, one.per_mb, one.early, one.queued));
    const double exposed = 2 * one.alpha + 4 * one.per_mb + one.early + one.queued;
    const auto measured = write("run.json", run(breakdown(30, 60, exposed, exposed, 5, 0)));
    const auto difference = compare(load_account(predicted), load_account(measured));
    EXPECT_THAT(difference.notes, IsEmpty());
    EXPECT_THAT(difference.verdict, HasSubstr(fmt::format("most of it is {}: +", one.name)));
    for (const auto& each : difference.classes) {
      if (each.name == one.name) {
        EXPECT_NEAR(each.ms(), difference.ms(), 1e-9) << one.name;
      } else {
        EXPECT_NEAR(each.ms(), 0, 1e-9) << each.name;
      }
    }
  }
}

TEST_F(DifferenceFiles, WithoutATraceUnevenWorkersAreWaitingAndMoreBytesBandwidth) {
  const auto predicted = load_account(write("predicted.json", prediction()));
  Json waits = run(breakdown(30, 60, 50, 30, 5, 0));
  waits["summary"]["workers"] = workers({0.95, 1.15});  // the mean waits 10 ms
  auto difference = compare(predicted, load_account(write("run.json", waits)));
  EXPECT_NEAR(find(difference, "waiting").ms(), 10, 1e-9);
  EXPECT_NEAR(find(difference, "bandwidth").ms(), 0, 1e-9);
  ASSERT_EQ(difference.notes.size(), 1u);
  EXPECT_THAT(difference.notes[0], HasSubstr("trace.json"));
  Json bytes = run(breakdown(30, 60, 50, 32, 5, 0));
  bytes["summary"]["bytes_sent"] = 8e7;
  difference = compare(predicted, load_account(write("run.json", bytes)));
  EXPECT_NEAR(find(difference, "bandwidth").ms(), 12, 1e-9);
  EXPECT_THAT(difference.verdict, HasSubstr("bandwidth"));
}

TEST_F(DifferenceFiles, AnotherJobIsNoted) {
  Json other = run(breakdown(30, 60, 40, 20, 5, 0));
  other["summary"]["strategy"] = "local-sgd:H=8";
  other["summary"]["workers"] = workers({1, 1, 1});
  const auto difference = compare(load_account(write("p.json", prediction())), load_account(write("run.json", other)));
  EXPECT_THAT(difference.notes, ::testing::Contains(HasSubstr("strategy allreduce was predicted, local-sgd ran")));
  EXPECT_THAT(difference.notes, ::testing::Contains(HasSubstr("2 workers were predicted, 3 ran")));
}

TEST_F(DifferenceFiles, AsPredictedIsSaid) {
  write("trace.json", trace(4, 6, 4, 4));
  const auto difference = compare(load_account(write("predicted.json", prediction())),
                                  load_account(write("run.json", run(breakdown(30, 60, 40, 20.1, 5, 0)))));
  EXPECT_THAT(difference.verdict, HasSubstr("as predicted"));
  for (int width : {40, 80, 120}) {
    std::istringstream lines(to_text(difference, width));
    for (std::string line; std::getline(lines, line);) {
      if (width >= 62) {
        EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
      }
    }
  }
  EXPECT_EQ(to_json(difference)["classes"].size(), 6u);
}

TEST_F(DifferenceFiles, PlansAndRunsWithTheirOwnPredictionAreRead) {
  const auto plan = load_account(write("plan.json", Json{{"format", "trireme-plan"}, {"prediction", prediction()}}));
  EXPECT_EQ(plan.kind, "plan.json");
  EXPECT_DOUBLE_EQ(plan.step_ms, 115);
  Json own = run(breakdown(31, 60, 40, 20, 5, 0));
  const auto bare = write("bare.json", own);
  own["summary"]["predicted"] = {{"step_ms", 115}, {"breakdown_ms", breakdown(30, 60, 40, 20, 5, 0)}};
  own["summary"]["measured"] = {{"step_ms", 117}, {"breakdown_ms", breakdown(32, 60, 40, 20, 5, 0)}};
  const auto path = write("run.json", own);
  EXPECT_FALSE(own_prediction(bare));
  const auto predicted = own_prediction(path);
  ASSERT_TRUE(predicted);
  EXPECT_DOUBLE_EQ(compare(*predicted, load_account(path)).ms(), 2);
}

TEST_F(DifferenceFiles, BadFilesAreRefusedByName) {
  auto error = [&](const std::string& text) -> std::string {
    try {
      load_account(write("bad.json", text));
    } catch (const DataError& refused) {
      return refused.what();
    }
    return "";
  };
  EXPECT_THAT(error("{}"), HasSubstr("breakdown_ms: missing: this is neither"));
  EXPECT_THAT(error("{\n]"), HasSubstr("bad.json:2: no valid JSON"));
  EXPECT_THAT(error(R"({"status":"running","config":{}})"), HasSubstr("has not come to its end"));
  EXPECT_THAT(error(R"({"breakdown_ms":{"forward":"x"}})"), HasSubstr("breakdown_ms.forward: a number was expected"));
  const std::string good = prediction().dump();
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 3) EXPECT_NE(error(good.substr(0, bytes)), "") << bytes;
  EXPECT_THROW(shares_of_trace("{\"traceEvents\":3}", "trace.json"), DataError);
  EXPECT_FALSE(shares_of_trace(R"({"traceEvents":[1,{},{"name":"bucket 1"},{"name":3,"args":{}}]})", "t"));
}

}  // namespace
}  // namespace trireme::cluster
