#include "trireme/cluster/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/cluster/profile/profile_json.h"
#include "trireme/compress/codecs.h"

namespace trireme::cluster {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What is said of a profile that was changed.
template <typename Change>
std::string said_of(const Change& change) {
  auto json = to_json(example_profile("tiny"));
  change(json);
  try {
    (void)parse_profile(json.dump(1), "p.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Profile, ReadsWhatItWrote) {
  for (auto name : example_profiles()) {
    auto profile = example_profile(name);
    profile.slowdown = 0.25;
    profile.turn_s = 0.003;
    profile.request_s = 0.0004;
    profile.link_request_s = 0.0007;
    profile.resumed_s = 0.0001;
    profile.server_s_per_byte = 2e-10;
    profile.pass_s_per_byte = 3e-11;
    profile.residuals = {0.9, 1, 1.3};
    auto read = parse_profile(to_json(profile).dump(), "x");
    EXPECT_EQ(read.file, "x");
    read.file.clear();
    EXPECT_EQ(read, profile) << name;
  }
}

TEST(Profile, SavesAndLoads) {
  const auto path = std::filesystem::temp_directory_path() / ("trireme-profile-" + std::to_string(getpid()) + ".json");
  save_profile(example_profile("tiny"), path);
  EXPECT_EQ(load_profile(path).gradients.size(), 4u);
  std::filesystem::remove(path);
  EXPECT_THROW((void)load_profile(path), DataError);
  EXPECT_THROW(save_profile(example_profile("tiny"), "/no/such/folder/p.json"), Error);
}

TEST(Profile, SaysWhatIsWrongInOneLine) {
  EXPECT_THAT(said_of([](auto& json) { json.erase("batch"); }), HasSubstr("batch: missing"));
  EXPECT_THAT(said_of([](auto& json) { json["batch"] = 0; }), HasSubstr("batch: a whole number from 1 to"));
  EXPECT_THAT(said_of([](auto& json) { json["colour"] = 1; }), HasSubstr("colour: no such key"));
  EXPECT_THAT(said_of([](auto& json) { json["format"] = "other"; }), HasSubstr("format: \"trireme-profile-1\""));
  EXPECT_THAT(said_of([](auto& json) { json["layers"][2]["forward_s"]["p50"] = "fast"; }),
              HasSubstr("layers.2.forward_s.p50: a number was expected"));
  EXPECT_THAT(said_of([](auto& json) { json["layers"][2]["splittable"] = 3; }), HasSubstr("true or false"));
  EXPECT_THAT(said_of([](auto& json) {
                json["step_s"] = {{"p10", 3}, {"p50", 2}, {"p90", 4}};
              }),
              HasSubstr("step_s: p10 ≤ p50 ≤ p90"));
  EXPECT_THAT(said_of([](auto& json) { json["gradients"] = nlohmann::json::array(); }),
              HasSubstr("gradients: at least one gradient"));
  EXPECT_THAT(said_of([](auto& json) { json["gradients"][0]["rows"] = 7; }), HasSubstr("rows: must divide the"));
  EXPECT_THAT(said_of([](auto& json) {
                json["gradients"][1]["ready_s"] = {{"p10", 0}, {"p50", 0}, {"p90", 0}};
              }),
              HasSubstr("gradients.1.ready_s.p50: a time no earlier"));
  EXPECT_THAT(said_of([](auto& json) { json["gradients"][1]["elements"] = 1ULL << 60; }),
              HasSubstr("elements: a whole"));
  EXPECT_THAT(said_of([](auto& json) { json["slowdown"] = 1.5; }), HasSubstr("a number from 0 to 1"));
  EXPECT_THAT(said_of([](auto& json) { json["residuals"] = 3; }), HasSubstr("residuals: a list was expected"));
  EXPECT_EQ(said_of([](auto&) {}), "accepted");
}

TEST(Profile, RefusesEveryTruncationAndWrongType) {
  const auto text = to_json(example_profile("tiny")).dump();
  for (std::size_t size = 0; size + 1 < text.size(); size += 7) {
    EXPECT_THROW((void)parse_profile(text.substr(0, size), "x"), DataError) << size;
  }
  const auto json = to_json(example_profile("tiny"));
  for (const auto& [key, value] : json.items()) {
    for (const nlohmann::json& wrong : {nlohmann::json(nullptr), nlohmann::json(-1), nlohmann::json("?")}) {
      if (value.is_string() && wrong.is_string() && key != "format") continue;
      EXPECT_THAT(said_of([&](auto& all) { all[key] = wrong; }), StartsWith("p.json:")) << key << wrong;
    }
  }
}

TEST(Profile, QuantilesOfNumbers) {
  EXPECT_EQ(quantiles_of({}), Quantiles{});
  EXPECT_EQ(quantiles_of({5}), (Quantiles{5, 5, 5}));
  EXPECT_EQ(quantiles_of({10, 0, 5}), (Quantiles{1, 5, 9}));
}

TEST(Profile, ExamplesAreLikeTheirModels) {
  const auto resnet = example_profile("resnet50-like");
  EXPECT_NEAR(static_cast<double>(resnet.gradient_elements()), 25.6e6, 0.2e6);
  EXPECT_NEAR(resnet.forward_s.p50, 32 * 2 * 4.1e9 / 10e12, 0.01);
  EXPECT_NEAR(static_cast<double>(example_profile("gpt-like").gradient_elements()), 85e6, 1e6);
  EXPECT_EQ(resnet.codecs.size(), compress::codecs().size());
  EXPECT_NEAR(resnet.codec("fp16").ratio, 0.5, 0.01);
  EXPECT_EQ(resnet.codec("none").ratio, 1);
  EXPECT_THROW((void)resnet.codec("zip"), ConfigError);
  EXPECT_THROW((void)example_profile("no-such"), ConfigError);
}

}  // namespace
}  // namespace trireme::cluster
