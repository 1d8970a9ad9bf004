#include "trireme/mesh/choice/mesh_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"

namespace trireme::mesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four equal pieces, measured with micro-batches of 2 samples; a wire of 100 bytes a second.
const std::vector<PieceCost> kFour(4, {"piece", 1, 2, 100, 10, 0});
MeshQuestion four() {
  MeshQuestion question{.pieces = kFour, .workers = 4, .batch = 8, .micro_batches = 4};
  question.machine = {0, 100, 0, 3};
  return question;
}

std::vector<std::string> shapes(const std::vector<MeshOption>& options) {
  std::vector<std::string> list;
  for (const auto& option : options) list.push_back(to_text(option.shape));
  return list;
}

TEST(MeshChoice, RanksByHand) {
  auto options = rank_meshes(four());
  EXPECT_THAT(shapes(options),
              ElementsAre("data=4,pipe=1,tensor=1", "data=2,pipe=2,tensor=1", "data=1,pipe=4,tensor=1",
                          "data=1,pipe=1,tensor=4", "data=1,pipe=2,tensor=2", "data=2,pipe=1,tensor=2"));
  // data=4: two micro-batches of 1 sample take 6 s each, the last backward 4 s of it; the ring 2·3·(400/4)/100 = 6 s.
  EXPECT_EQ(options[0].micro_batches, 2);
  EXPECT_DOUBLE_EQ(options[0].step_s, 8 + 6);
  EXPECT_EQ(options[0].memory_bytes, 3 * 400 + 4 * 5u);
  // data=2, pipe=2: (4 + 1) beats of 3 s; the first stage's last piece shows 1 of the ring's 2 s.
  EXPECT_DOUBLE_EQ(options[1].step_s, 15 + 1);
  EXPECT_EQ(options[1].memory_bytes, 3 * 200 + 2 * 2 * 5u);
  // pipe=4: (4 + 3) beats of 3 s.
  EXPECT_DOUBLE_EQ(options[2].step_s, 21);
  EXPECT_EQ(options[2].memory_bytes, 3 * 100 + 4 * 10u);
  EXPECT_THAT(options[2].why, HasSubstr("bubble 43 %"));
  EXPECT_FALSE(options[3].possible);
  EXPECT_EQ(options[3].why, "no piece can be split inside");
}

TEST(MeshChoice, WhatDoesNotFitComesLastAndSaysWhatIsMissing) {
  auto question = four();
  question.machine.memory_bytes = 700;
  auto options = rank_meshes(question);
  EXPECT_EQ(to_text(options[0].shape), "data=2,pipe=2,tensor=1");
  EXPECT_EQ(to_text(options[1].shape), "data=1,pipe=4,tensor=1");
  EXPECT_EQ(to_text(options[2].shape), "data=4,pipe=1,tensor=1");
  EXPECT_FALSE(options[2].fits);
  EXPECT_EQ(options[2].why, "needs 1.19 KiB per worker, 700 bytes are there");
}

TEST(MeshChoice, SplitsInsideLayersWhereGradientsAreHeavy) {
  std::vector<PieceCost> one{{"linear", 1, 2, 400, 0, 0}};
  std::vector<TensorCost> inside{{true, 100}};
  MeshQuestion question{.pieces = one, .workers = 2, .batch = 2, .micro_batches = 1};
  question.machine = {0, 100, 0, 3};
  question.tensor_costs = inside;
  auto options = rank_meshes(question);
  EXPECT_EQ(to_text(options[0].shape), "data=1,pipe=1,tensor=2");
  EXPECT_DOUBLE_EQ(options[0].step_s, 1.5 + 1);  // half the compute, and a ring of 100 bytes
  EXPECT_EQ(options[0].memory_bytes, 600u);
  EXPECT_EQ(to_text(options[1].shape), "data=2,pipe=1,tensor=1");
  EXPECT_DOUBLE_EQ(options[1].step_s, 1.5 + 4);  // one piece: none of its ring is hidden
  EXPECT_EQ(options[2].why, "2 parts of a chain of 1");
}

TEST(MeshChoice, TransfersBetweenStagesCount) {
  std::vector<PieceCost> two(2, {"piece", 1, 2, 0, 0, 50});
  MeshQuestion question{.pieces = two, .workers = 2, .batch = 1, .micro_batches = 1};
  question.machine = {0.25, 100, 0, 3};
  // One sample: through both stages and back, with 0.25 + 0.5 s on the wire each way.
  EXPECT_DOUBLE_EQ(predict_mesh(question, {1, 2, 1}).step_s, 6 + 1.5);
  EXPECT_EQ(predict_mesh(question, {2, 1, 1}).why, "2 replicas for a batch of 1");
}

TEST(MeshChoice, SavesMemoryForTime) {
  auto question = four();
  question.saving = {Saving::Shard::parameters, 0};
  auto option = predict_mesh(question, {4, 1, 1});
  EXPECT_EQ(option.memory_bytes, 300 + 20 + 100u);  // a quarter of the state, and one piece's weights gathered
  EXPECT_DOUBLE_EQ(option.step_s, 8 + 9);
  question.saving = {Saving::Shard::optimizer, 0};
  EXPECT_EQ(predict_mesh(question, {4, 1, 1}).memory_bytes, 900 + 20u);
  question.saving = {Saving::Shard::gradients, 0};
  EXPECT_EQ(predict_mesh(question, {4, 1, 1}).memory_bytes, 600 + 20u);
  question.saving = {Saving::Shard::none, 2};
  option = predict_mesh(question, {1, 4, 1});
  EXPECT_EQ(option.memory_bytes, 300 + 20u);  // what two pieces keep, once
  EXPECT_DOUBLE_EQ(option.step_s, 7 * 4);     // every forward twice
}

TEST(MeshChoice, SaysWhatWouldFit) {
  auto question = four();
  question.machine.memory_bytes = 330;
  EXPECT_FALSE(rank_meshes(question)[0].fits);
  EXPECT_THAT(what_would_fit(question),
              ElementsAre("--recompute every:2 with --mesh data=1,pipe=4,tensor=1 needs 320 bytes per worker"));
  question.machine.memory_bytes = 345;
  question.workers = 2;
  EXPECT_THAT(what_would_fit(question),
              ElementsAre("4 workers with --mesh data=1,pipe=4,tensor=1 need 340 bytes each"));
  std::vector<PieceCost> uneven{{"large", 1, 2, 1000, 0, 0}, {"small", 1, 2, 0, 0, 0}};
  question.pieces = uneven;
  question.machine.memory_bytes = 2600;
  EXPECT_THAT(what_would_fit(question),
              ElementsAre("--shard optimizer with --mesh data=2,pipe=1,tensor=1 needs 2.44 KiB per worker"));
  question.machine.memory_bytes = 100;
  EXPECT_THAT(what_would_fit(question),
              ElementsAre(HasSubstr("nothing would: 'large' alone needs 2.93 KiB and 100 bytes are there")));
}

TEST(MeshChoice, EveryKindIsPredicted) {
  for (const auto& kind : pipelines::kinds()) {
    std::vector<PieceCost> pieces(9, {"piece", 1, 2, 100, 10, 20});
    MeshQuestion question{.pieces = pieces, .workers = 4, .batch = 16, .micro_batches = 8, .kind = kind.name};
    question.machine = {1e-3, 1e4, 0, 3};
    auto options = rank_meshes(question);
    ASSERT_EQ(options.size(), 6u);
    for (const auto& option : options) {
      if (!option.possible) continue;
      EXPECT_GT(option.step_s, 16 * 9 * 3 / 2 / 4 - 1e-9) << kind.name << option.why;
    }
  }
}

TEST(MeshChoice, RefusesWhatCannotBe) {
  auto question = four();
  std::vector<TensorCost> few(2);
  question.tensor_costs = few;
  EXPECT_THROW(rank_meshes(question), ConfigError);
  question = four();
  question.workers = 0;
  EXPECT_THROW(rank_meshes(question), ConfigError);
}

}  // namespace
}  // namespace trireme::mesh
