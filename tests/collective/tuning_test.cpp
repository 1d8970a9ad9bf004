#include "trireme/collective/cost/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/sanitized.h"
#include "trireme/base/error.h"
#include "trireme/collective/cost/measure.h"
#include "trireme/collective/cost/select.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

class Kept : public ::testing::Test {
 protected:
  Kept() { setenv("TRIREME_CACHE", folder_.c_str(), 1); }
  ~Kept() override {
    unsetenv("TRIREME_CACHE");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_ = ::testing::TempDir() + "trireme-tuning-" + std::to_string(::getpid());
};

TEST_F(Kept, ComesBackAsItWas) {
  EXPECT_FALSE(load_tuning("shm").has_value());
  Tuning tuning = default_tuning("tcp");
  tuning.inline_limit = 777;
  tuning.source = "a test";
  save_tuning(tuning, "shm");
  EXPECT_EQ(load_tuning("shm"), tuning);
  EXPECT_FALSE(load_tuning("tcp").has_value());
}

TEST_F(Kept, AFileThatIsNoTuningIsNamed) {
  save_tuning({}, "shm");
  for (const char* text : {"", "{", "[]", "{\"format\":\"other\"}", "{\"format\":\"trireme-tuning-3\"}"}) {
    std::ofstream(tuning_path("shm")) << text;
    try {
      load_tuning("shm");
      FAIL() << text;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(tuning_path("shm")));
    }
  }
}

TEST(Tuning, UnknownAndWrongValuesAreNamed) {
  auto json = to_json(Tuning{});
  json["extra"] = 1;
  EXPECT_THROW(tuning_from_json(json), DataError);
  json = to_json(Tuning{});
  json["stage_chunk"] = -5;
  EXPECT_THROW(tuning_from_json(json), DataError);
  json["stage_chunk"] = "big";
  EXPECT_THROW(tuning_from_json(json), DataError);
}

TEST(Select, SmallMessagesTakeFewRoundsAndLongOnesFewBytes) {
  Tuning tuning = default_tuning("tcp");
  tuning.model.message = {20e-6, {}, 1e-9};
  Selector selector(tuning, 16, false, false);
  auto small = selector.candidates(Collective::all_reduce, 1, DType::f32, 0);
  auto large = selector.candidates(Collective::all_reduce, 64 << 20, DType::f32, 0);
  auto seconds = [](const std::vector<Candidate>& list, std::string_view name) {
    for (const auto& candidate : list)
      if (candidate.algorithm->name == name) return candidate.seconds;
    return -1.0;
  };
  EXPECT_LT(seconds(small, "butterfly"), seconds(small, "ring"));
  EXPECT_LT(seconds(large, "ring"), seconds(large, "butterfly"));
  EXPECT_LE(large.front().seconds, seconds(large, "ring"));
}

TEST(Select, SharedMemoryNeedsAChannelThatHasIt) {
  Selector selector(default_tuning("tcp"), 4, false, false);
  EXPECT_THROW(selector.prefer(Collective::all_reduce, "direct"), ConfigError);
  EXPECT_THROW(selector.prefer(Collective::all_reduce, "no-such"), ConfigError);
  for (const auto& candidate : selector.candidates(Collective::all_reduce, 100, DType::f32, 0)) {
    EXPECT_FALSE(candidate.algorithm->shared);
  }
}

TEST(Select, DeterministicTakesOnlyTheCanonicalOrder) {
  for (bool shared : {false, true}) {
    Selector selector(default_tuning("tcp"), 4, shared, true);
    selector.prefer(Collective::all_reduce, "ring");
    Request request{.what = Collective::all_reduce, .count = 1000};
    selector.choose(request);
    EXPECT_TRUE(request.algorithm->canonical);
    for (std::size_t count : {1u, 1000u, 1'000'000u}) {
      Selector free(default_tuning("tcp"), 4, shared, true);
      Request any{.what = Collective::all_reduce, .count = count};
      free.choose(any);
      EXPECT_TRUE(any.algorithm->canonical);
    }
  }
}

TEST(Measure, EveryRankGetsTheSameTuning) {
  std::vector<Tuning> tunings(2);
  run_threads(2, [&](Communicator& comm) {
    tunings[comm.rank()] = measure_tuning(comm, [](std::string_view) {}, {1e-4, test::kSanitized ? 1 << 16 : 1 << 20});
  });
  EXPECT_EQ(tunings[0], tunings[1]);
  EXPECT_GT(tunings[0].model.message.start, 0);
  EXPECT_EQ(tuning_from_json(to_json(tunings[0])), tunings[0]);
}

}  // namespace
}  // namespace trireme
