#include "trireme/collective/cost/link_model.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/cost_json.h"

namespace trireme::link_model_test {
namespace {

using nlohmann::json;

LinkModel sample() {
  LinkModel model;
  model.message = {1e-6, {{1000, 2e-6}, {4000, 8e-6}}, 1e-9};
  model.gamma = 3e-11;
  model.copy = 2e-11;
  model.wires = Wires::one;
  model.sync = 4e-7;
  model.memory = {0, {{65536, 1e-6}}, 5e-11};
  model.corrections = Corrections(4);
  model.corrections.add(Collective::all_reduce, "ring", 1024, 2);
  model.corrections.add(Collective::all_reduce, "ring", 64, 0.5);
  return model;
}

TEST(Curve, InterpolatesAndGoesOn) {
  Curve curve = sample().message;
  EXPECT_DOUBLE_EQ(curve(0), 1e-6);
  EXPECT_DOUBLE_EQ(curve(500), 1.5e-6);
  EXPECT_DOUBLE_EQ(curve(1000), 2e-6);
  EXPECT_DOUBLE_EQ(curve(2500), 5e-6);
  EXPECT_DOUBLE_EQ(curve(5000), 9e-6);
  EXPECT_DOUBLE_EQ((Curve{2, {}, 3}(5)), 17);
}

TEST(LinkModel, CorrectionsHoldForTheirRanksAlone) {
  const auto by = sample().corrections;
  EXPECT_DOUBLE_EQ(by(Collective::all_reduce, "ring", 4, 10), 0.5);
  EXPECT_DOUBLE_EQ(by(Collective::all_reduce, "ring", 4, 256), 1);  // half way on logarithmic axes
  EXPECT_DOUBLE_EQ(by(Collective::all_reduce, "ring", 4, 1e9), 2);
  EXPECT_DOUBLE_EQ(by(Collective::all_reduce, "ring", 2, 64), 1);
  EXPECT_DOUBLE_EQ(by(Collective::all_reduce, "tree", 4, 64), 1);
  EXPECT_DOUBLE_EQ(by(Collective::reduce, "ring", 4, 64), 1);
}

TEST(LinkModel, CorrectionsMultiplyWhatIsPredicted) {
  LinkModel model = sample(), plain = sample();
  plain.corrections = {};
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  const Call call{Collective::all_reduce, 0, 4, 0, 256, 256};
  EXPECT_DOUBLE_EQ(predict(ring, call, DType::f32, model), 2 * predict(ring, call, DType::f32, plain));
}

TEST(LinkModel, SurvivesJson) {
  EXPECT_EQ(link_model_from_json(json::parse(to_json(sample()).dump())), sample());
  EXPECT_EQ(link_model_from_json(to_json(LinkModel{})), LinkModel{});
}

TEST(LinkModel, RefusesEveryMissingAndUnknownKey) {
  json good = to_json(sample());
  for (const auto& item : good.items()) {
    json bad = good;
    bad.erase(item.key());
    EXPECT_THROW(link_model_from_json(bad), DataError) << item.key();
    bad = good;
    bad[item.key()] = "text";
    EXPECT_THROW(link_model_from_json(bad), DataError) << item.key();
  }
  good["extra"] = 1;
  EXPECT_THROW(link_model_from_json(good), DataError);
}

TEST(LinkModel, RefusesBadCurves) {
  for (const char* points :
       {"[[0,1]]", "[[2,1],[2,3]]", "[[2,1],[1,3]]", "[[1]]", "[1,2]", "7", "[[1,-1]]", "[[1,null]]"}) {
    json bad = to_json(sample());
    bad["message"]["points"] = json::parse(points);
    EXPECT_THROW(link_model_from_json(bad), DataError) << points;
  }
  json bad = to_json(sample());
  bad["gamma_s_per_byte"] = -1;
  EXPECT_THROW(link_model_from_json(bad), DataError);
  EXPECT_THROW(link_model_from_json(json::parse("[]")), DataError);
}

}  // namespace
}  // namespace trireme::link_model_test
