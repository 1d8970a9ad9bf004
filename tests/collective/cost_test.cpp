// Counted and predicted costs against numbers worked out by hand.
#include "trireme/collective/cost/cost.h"

#include <gtest/gtest.h>

#include <ctime>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"

namespace trireme::cost_test {
namespace {

Call call_of(Collective what, int ranks, std::size_t count) { return {what, 0, ranks, 0, count, count}; }

LinkModel line(double alpha, double beta, double gamma, Wires wires = Wires::many) {
  LinkModel model;
  model.message = {alpha, {}, beta};
  model.gamma = gamma;
  model.wires = wires;
  return model;
}

// Rank 0 gets everybody's vector in one round, then sends the sum back in another.
Schedule plan_master(const Call& call) {
  Schedule schedule;
  schedule.rounds = 2;
  schedule.fill = [call](int k, Round& out) {
    Slice all{Buffer::output, 0, call.count};
    if (k == 0) out.push_back({StepKind::copy, 0, {Buffer::input, 0, call.count}, all});
    if (call.rank > 0) {
      out.push_back(k == 0 ? Step{StepKind::send, 0, all, {}} : Step{StepKind::recv, 0, {}, all});
      return;
    }
    for (int peer = 1; peer < call.ranks; ++peer) {
      out.push_back(k == 0 ? Step{StepKind::recv_reduce, peer, {}, all} : Step{StepKind::send, peer, all, {}});
    }
  };
  return schedule;
}
const Algorithm kMaster{Collective::all_reduce, "test-master", "", false, false, Pattern::other, plan_master};

// A chain in which rank r has nothing to do before round r − 1.
Schedule plan_chain(const Call& call) {
  Schedule schedule;
  schedule.rounds = call.ranks - 1;
  schedule.fill = [call](int k, Round& out) {
    Slice all{Buffer::output, 0, call.count};
    if (call.rank == k) out.push_back({StepKind::send, k + 1, all, {}});
    if (call.rank == k + 1) out.push_back({StepKind::recv, k, {}, all});
  };
  return schedule;
}
const Algorithm kChain{Collective::broadcast, "test-chain", "", false, true, Pattern::other, plan_chain};

Schedule plan_lost_message(const Call& call) {
  Schedule schedule = plan_chain(call);
  schedule.fill = [call, fill = schedule.fill](int k, Round& out) {
    if (call.rank != call.ranks - 1) fill(k, out);
  };
  return schedule;
}
const Algorithm kLostMessage{Collective::broadcast, "test-lost", "", false, true, Pattern::other, plan_lost_message};

TEST(Count, MasterByHand) {
  Count count = count_schedule(kMaster, call_of(Collective::all_reduce, 5, 10), 4);
  EXPECT_EQ(count.wires, 4);
  EXPECT_EQ(count.rounds, 2);
  EXPECT_EQ(count.bytes_per_round, 40u);
  EXPECT_EQ(count.sent_per_round, 160u);
  EXPECT_EQ(count.total_bytes, 320u);
  EXPECT_EQ(count.max_sent, 160u);
  EXPECT_EQ(count.max_received, 160u);
  EXPECT_EQ(count.max_reduced, 160u);
}

TEST(Count, RingByHand) {
  // 10 elements in 4 parts of 3, 3, 2, 2: rank 0 sends all parts but its own, then all but the next.
  Count count =
      count_schedule(find_algorithm(Collective::all_reduce, "ring"), call_of(Collective::all_reduce, 4, 10), 8);
  EXPECT_EQ(count.wires, 2);
  EXPECT_EQ(count.rounds, 6);
  EXPECT_EQ(count.bytes_per_round, 24u);
  EXPECT_EQ(count.total_bytes, 2u * 3 * 80);
  EXPECT_EQ(count.max_sent, (10u - 2 + 10 - 2) * 8);
}

TEST(Count, DirectMovesTheFloor) {
  // Each input read once and each output written once: 2·P·n bytes.
  Count count =
      count_schedule(find_algorithm(Collective::all_reduce, "direct"), call_of(Collective::all_reduce, 4, 1000), 4);
  EXPECT_EQ(count.loaded, 16000u);
  EXPECT_EQ(count.stored, 16000u);
  EXPECT_EQ(count.total_bytes, 2u * 3 * 4000);
  EXPECT_EQ(count.wires, 3);
  EXPECT_EQ(count.rounds, 1);
}

TEST(Count, RefusesASendThatNobodyReceives) {
  EXPECT_THROW(count_schedule(kLostMessage, call_of(Collective::broadcast, 4, 1), 4), Error);
}

TEST(Count, EveryAlgorithmMatchesSendsToReceives) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks : {1, 2, 3, 4, 7, 8, 13}) {
      for (std::size_t elements : {0, 1, 5, 64}) {
        SCOPED_TRACE(std::string(name(algorithm.what)) + " " + std::string(algorithm.name) + " " +
                     std::to_string(ranks) + " " + std::to_string(elements));
        Call call = call_of(algorithm.what, ranks, elements);
        Count count = count_schedule(algorithm, call, 4);
        double seconds = predict(algorithm, call, DType::f32, LinkModel{});
        EXPECT_GE(seconds, 0);
        if (ranks == 1) {
          EXPECT_EQ(count.total_bytes, 0u);
        }
        EXPECT_LT(count.wires, ranks);
        EXPECT_LE(count.max_sent, count.total_bytes);
        EXPECT_LE(count.bytes_per_round, count.total_bytes);
      }
    }
  }
}

TEST(Predict, MasterByHand) {
  Call call = call_of(Collective::all_reduce, 5, 250);  // n = 1000 bytes
  // Many wires: α + nβ + 4nγ up, α + nβ down. One: the master takes four messages one after the other, both ways.
  EXPECT_DOUBLE_EQ(predict(kMaster, call, DType::f32, line(10, 0.25, 0.5)), 2 * (10 + 250) + 4 * 500);
  EXPECT_DOUBLE_EQ(predict(kMaster, call, DType::f32, line(10, 0.25, 0.5, Wires::one)), 8 * (10 + 250) + 4 * 500);
}

TEST(Predict, ChainAddsUp) {
  EXPECT_DOUBLE_EQ(predict(kChain, call_of(Collective::broadcast, 6, 25), DType::f32, line(3, 0.5, 1)), 5 * (3 + 50));
}

TEST(Predict, RingByHand) {
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  for (Wires wires : {Wires::one, Wires::many}) {
    double seconds = predict(ring, call_of(Collective::all_reduce, 4, 16), DType::f32, line(7, 2, 3, wires));
    EXPECT_DOUBLE_EQ(seconds, 6 * (7 + 16 * 2) + 3 * 16 * 3);
  }
}

TEST(Predict, DirectByHand) {
  LinkModel model;
  model.sync = 5;
  model.memory = {1, {}, 0.5};
  // Before and after one round in which each rank loads 4 and stores 4 quarters of 64 bytes.
  double seconds = predict(find_algorithm(Collective::all_reduce, "direct"), call_of(Collective::all_reduce, 4, 16),
                           DType::f32, model);
  EXPECT_DOUBLE_EQ(seconds, 2 * 5 + 1 + 0.5 * 128);
  // Inline copies 64 bytes to its stage, then reads four stages: one synchronization between.
  seconds = predict(find_algorithm(Collective::all_reduce, "inline"), call_of(Collective::all_reduce, 4, 16),
                    DType::f32, model);
  EXPECT_DOUBLE_EQ(seconds, 5 + (1 + 0.5 * 128) + (1 + 0.5 * 320));
}

TEST(Predict, QuickEnoughToChooseBy) {
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  double fastest = 1;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto start = std::clock();  // processor time: what else runs here does not count
    predict(ring, call_of(Collective::all_reduce, 64, 1 << 20), DType::f32, LinkModel{});
    fastest = std::min(fastest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  EXPECT_LT(fastest, 0.02);  // about 0.5 ms when optimized; sanitizers are slower
  RecordProperty("seconds", std::to_string(fastest));
}

}  // namespace
}  // namespace trireme::cost_test
