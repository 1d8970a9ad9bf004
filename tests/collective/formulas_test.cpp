// Closed forms against what is counted from schedules, and against numbers worked out by hand.
#include "trireme/collective/cost/formulas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "trireme/collective/cost/differences.h"

namespace trireme {
namespace {

constexpr double kAlpha = 5e-6, kBeta = 1e-10, kGamma = 5e-11;

PricedCall price(const Algorithm& algorithm, int ranks, std::size_t elements, Wires wires) {
  PricedCall call;
  call.algorithm = &algorithm;
  std::size_t count = has_blocks(algorithm.what) ? (elements + ranks - 1) / ranks : elements;
  if (algorithm.what == Collective::barrier) count = 0;
  call.shape = {algorithm.what, 0, ranks, 0, count, count};
  call.count = count_schedule(algorithm, call.shape, 4);
  LinkModel model;
  model.message = {kAlpha, {}, kBeta};
  model.gamma = kGamma;
  model.wires = call.wires = wires;
  call.seconds = predict(algorithm, call.shape, DType::f32, model);
  double bytes = 4.0 * static_cast<double>(count) * (has_blocks(algorithm.what) ? ranks : 1);
  call.form = closed_form(algorithm.what, algorithm.name, {ranks, bytes, kAlpha, kBeta, kGamma});
  return call;
}

std::string where(const PricedCall& call) {
  return fmt::format("{} {} ranks {} count {} wires {}: differs in {}; note: {}", name(call.shape.what),
                     call.algorithm->name, call.shape.ranks, call.shape.count,
                     call.wires == Wires::one ? "one" : "many", fmt::join(differences(call), ", "),
                     difference_note(call));
}

TEST(Formulas, EveryMessageAlgorithmHasOne) {
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(closed_form(algorithm.what, algorithm.name, {4, 64, 1, 1, 1}).has_value(), !algorithm.shared)
        << name(algorithm.what) << " " << algorithm.name;
  }
}

TEST(Formulas, CountedExactlyOnPowersOfTwo) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared) continue;
    for (int ranks : {8, 16, 32}) {
      for (Wires wires : {Wires::one, Wires::many}) {
        PricedCall call = price(algorithm, ranks, 1 << 20, wires);
        // A heap-shaped tree of 2^k ranks has one rank on its last level; its textbook form takes it as full.
        if (algorithm.name == "tree") {
          for (auto quantity : differences(call)) EXPECT_EQ(quantity, "time") << where(call);
        } else {
          EXPECT_TRUE(differences(call).empty()) << where(call);
        }
      }
    }
  }
}

TEST(Formulas, FullTreesAreCountedExactly) {
  const Algorithm& tree = find_algorithm(Collective::all_reduce, "tree");
  for (int levels : {2, 3, 4}) {
    int ranks = (2 << levels) - 1;
    PricedCall call = price(tree, ranks, 1000, Wires::many);
    double n = 4000;
    EXPECT_EQ(call.count.rounds, 2 * levels);
    EXPECT_NEAR(call.seconds, 2 * levels * (kAlpha + n * kBeta + n * kGamma), 1e-15);
    call = price(tree, ranks, 1000, Wires::one);
    EXPECT_NEAR(call.seconds, 4 * levels * (kAlpha + n * kBeta) + 2 * levels * n * kGamma, 1e-15);
  }
}

TEST(Formulas, EveryDifferenceHasAReason) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared) continue;
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (std::size_t elements : {0, 1, 7, 1000, 5040}) {
        for (Wires wires : {Wires::one, Wires::many}) {
          PricedCall call = price(algorithm, ranks, elements, wires);
          bool differs = !differences(call).empty();
          EXPECT_EQ(!difference_note(call).empty(), differs) << where(call);
          EXPECT_EQ(difference_note(call).find("from the form"), std::string::npos) << where(call);
        }
      }
    }
  }
}

TEST(Formulas, ByHand) {
  // 8 ranks, 100 MiB each.
  double n = 104857600;
  Symbols at{8, n, 0, 1e-10, 0};
  auto ring = *closed_form(Collective::all_reduce, "ring", at);
  EXPECT_DOUBLE_EQ(ring.rounds.value, 14);
  EXPECT_DOUBLE_EQ(ring.bytes_per_round.value, 13107200);
  EXPECT_DOUBLE_EQ(ring.total_bytes.value, 14 * n);
  EXPECT_DOUBLE_EQ(ring.time_one.value, 1.75 * n * 1e-10);
  auto naive = *closed_form(Collective::all_reduce, "naive", at);
  EXPECT_DOUBLE_EQ(naive.total_bytes.value, 56 * n);
  EXPECT_DOUBLE_EQ(naive.time_many.value, n * 1e-10);
  EXPECT_DOUBLE_EQ(naive.time_one.value, 7 * n * 1e-10);
  auto server = parameter_server_form(at);
  EXPECT_DOUBLE_EQ(server.wires.value, 8);
  EXPECT_DOUBLE_EQ(server.total_bytes.value, 16 * n);
  EXPECT_DOUBLE_EQ(server.time_many.value, 2 * n * 1e-10);
  EXPECT_DOUBLE_EQ(server.time_one.value, 16 * n * 1e-10);
  EXPECT_DOUBLE_EQ(closed_form(Collective::all_reduce, "butterfly", at)->total_bytes.value, 24 * n);
  EXPECT_DOUBLE_EQ(closed_form(Collective::all_reduce, "tree", at)->time_many.value, 6 * n * 1e-10);
  // (log p + p − 1)·α + 2·(p−1)/p·n·β
  Symbols with_alpha{8, 800, 3, 2, 1};
  EXPECT_DOUBLE_EQ(closed_form(Collective::broadcast, "scatter-all-gather", with_alpha)->time_one.value,
                   10 * 3 + 1400 * 2);
  EXPECT_DOUBLE_EQ(closed_form(Collective::reduce, "reduce-scatter-gather", with_alpha)->time_one.value,
                   10 * 3 + 1400 * 2 + 700);
  EXPECT_DOUBLE_EQ(closed_form(Collective::scatter, "mst", with_alpha)->time_one.value, 3 * 3 + 700 * 2);
}

TEST(Differences, SayWhy) {
  auto note = [](const char* algorithm, int ranks, std::size_t elements) {
    return difference_note(price(find_algorithm(Collective::all_reduce, algorithm), ranks, elements, Wires::many));
  };
  EXPECT_EQ(note("ring", 8, 1024), "");
  EXPECT_EQ(note("ring", 2, 1024), "a rank has only 1 peer");
  EXPECT_EQ(note("ring", 4, 10), "10 elements do not divide by 4: the largest part has 3");
  EXPECT_EQ(note("ring", 1, 10), "one rank: nothing is sent");
  EXPECT_EQ(note("butterfly", 6, 60),
            "log2 6 = 2.58 is not whole: 2 ranks beyond 4 fold in before and are served after");
  EXPECT_EQ(note("mst", 6, 60), "log2 6 = 2.58 is not whole: the spanning tree has 3 levels of unequal halves");
}

}  // namespace
}  // namespace trireme
