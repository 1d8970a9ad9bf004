// What `trireme explain` draws of the matrix product, of LSTMs and of attention against the operators' own results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/ops/attention/draw/steps.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/draw/steps.h"
#include "trireme/ops/matmul/matmul.h"
#include "trireme/ops/recurrent/draw/steps.h"

namespace trireme::ops {
namespace operator_draw_test {

using testing::HasSubstr;

void expect_whole_products() {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 2, 1}, {60, 100, 600}, {300, 70, 40}, {17, 700, 9}, {5, 31, 1030}, {257, 33, 3}}) {
    const MatmulTrace trace = trace_matmul(m, n, k);
    std::vector<int64_t> products(static_cast<std::size_t>(m * n));  // added to each element of c, in order
    for (const MatmulEvent& it : trace.events) {
      if (it.kind != MatmulEvent::Kind::tile) continue;
      for (int64_t i = it.i; i < it.i + it.rows; ++i) {
        for (int64_t j = it.j; j < it.j + it.columns; ++j) {
          int64_t& sofar = products.at(static_cast<std::size_t>(i * n + j));
          ASSERT_EQ(sofar, it.l);
          ASSERT_EQ(it.add, it.l > 0);
          sofar += it.depth;
        }
      }
    }
    EXPECT_THAT(products, testing::Each(k));
    const MatmulCounts counts = count_events(trace);
    EXPECT_EQ(counts.multiplications, find_matmul_algorithm("tiled")->cost(m, n, k).multiplications);
    EXPECT_GE(counts.slots, counts.multiplications);
    EXPECT_GE(counts.packed_b, n * k) << "all of b is packed, at least once";
    std::vector<float> own(trace.c.size());
    matmul(m, n, k, {trace.a.data(), k}, {trace.b.data(), n}, own.data(), n);
    EXPECT_EQ(trace.c, own);
    for (int64_t at = 0; at < m * n; at += 7) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(trace.a[static_cast<std::size_t>(at / n * k + l)]) *
               static_cast<double>(trace.b[static_cast<std::size_t>(l * n + at % n)]);
      }
      EXPECT_NEAR(static_cast<double>(trace.c[static_cast<std::size_t>(at)]), sum, 1e-4 * static_cast<double>(k));
    }
  }
}

TEST(MatmulDrawing, TheTraceIsTheWholeProduct) {
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    SCOPED_TRACE(set);
    expect_whole_products();
  }
  set_instruction_set("auto");
}

TEST(MatmulDrawing, ShowsTilesAndCounts) {
  const OpDrawing drawing = draw_matmul(60, 100, 600);
  ASSERT_EQ(drawing.steps.size(), 4u);
  EXPECT_THAT(drawing_text(drawing), HasSubstr("By 3600000 multiplications; the definition takes 3600000"));
  EXPECT_THAT(drawing_text(drawing), HasSubstr("pack b"));
  EXPECT_THROW(draw_matmul(3, 1, 3), ConfigError);
  EXPECT_THROW(draw_matmul(1 << 12, 1 << 12, 1 << 12), ConfigError);
}

TEST(LstmDrawing, ComesToTheOperatorsResult) {
  for (const RecurrentShape& shape : {RecurrentShape{.layers = 3, .input = 5, .hidden = 4, .steps = 7, .batch = 3},
                                      RecurrentShape{.layers = 1, .input = 1, .hidden = 17, .steps = 1, .batch = 1}}) {
    const LstmDrawing drawn = draw_lstm(shape, 2);
    std::vector<RecurrentWeights> weights;
    for (const auto& layer : drawn.layers)
      weights.push_back({layer.w_ih.data(), layer.w_hh.data(), layer.b_ih.data(), layer.b_hh.data()});
    std::vector<float> output(drawn.output.size()), saved(static_cast<std::size_t>(shape.saved_size()));
    recurrent_forward(shape, weights, {.input = drawn.input.data(), .output = output.data(), .saved = saved.data()});
    EXPECT_EQ(drawn.output, output);
    EXPECT_EQ(2 * drawn.multiplications, shape.forward_flops());
    EXPECT_THAT(drawing_text(drawn.drawing), HasSubstr("own result differs by 0."));
  }
  EXPECT_THROW(draw_lstm({.layers = 1, .input = 1, .hidden = 1000, .steps = 1, .batch = 1}, 1), ConfigError);
}

TEST(LstmDrawing, AScheduleHasEveryStepOnce) {
  const RecurrentSchedule schedule = make_recurrent_schedule(3, 10, 4, 2, 4);
  ASSERT_TRUE(schedule.wavefront);
  const DrawnGrid grid = grid_of_schedule(schedule);
  ASSERT_EQ(grid.rows.size(), 1u + 3 * 2);
  for (std::size_t line = 1; line < grid.rows.size(); ++line) {
    std::string all;
    for (std::size_t wave = 1; wave < grid.rows[line].size(); ++wave) {
      if (grid.rows[line][wave] != "·") all += grid.rows[line][wave] + " ";
    }
    EXPECT_EQ(all, "0…3 4…7 8…9 ") << grid.rows[line][0];
    EXPECT_EQ(grid.rows[line].size(), schedule.waves.size() + 1);
    // A layer begins one wave after the one below it.
    EXPECT_EQ(grid.rows[line][1 + (line - 1) / 2], "0…3");
  }
}

TEST(AttentionDrawing, ComesToTheOperatorsResult) {
  for (const bool causal : {true, false}) {
    for (const auto& [length, dim] : {std::pair<int64_t, int64_t>{160, 4}, {1, 1}, {64, 3}, {129, 16}}) {
      const AttentionDrawing drawn = draw_attention(length, dim, causal);
      std::vector<float> output(drawn.output.size()), sums(static_cast<std::size_t>(length));
      attention_forward(drawn.shape, {{drawn.q.data(), 0, 0, dim},
                                      {drawn.k.data(), 0, 0, dim},
                                      {drawn.v.data(), 0, 0, dim},
                                      {output.data(), 0, 0, dim},
                                      sums.data()});
      EXPECT_EQ(drawn.output, output);
      const std::string text = drawing_text(drawn.drawing);
      EXPECT_THAT(text, HasSubstr("own result differs by 0."));
      const int64_t seen = causal ? length * (length + 1) / 2 : length * length;
      EXPECT_THAT(text, HasSubstr("by " + std::to_string(2 * seen * dim) + " multiplications"));
    }
  }
  EXPECT_THAT(drawing_text(draw_attention(160, 4, true).drawing), HasSubstr("6 of 9 blocks"));
  EXPECT_THROW(draw_attention(5000, 4, true), ConfigError);
}

// The largest score and the sum of the last query, by definition.
TEST(AttentionDrawing, NotesWhatOnlineSoftmaxHas) {
  constexpr int64_t kLength = 160, kDim = 4;
  const AttentionDrawing drawn = draw_attention(kLength, kDim, true);
  const auto& notes = drawn.drawing.steps[1].grids[0].rows;
  ASSERT_EQ(notes.size(), 1u + 3);
  for (std::size_t block = 1; block < notes.size(); ++block) {
    std::vector<double> scores;
    for (int64_t key = 0; key < std::min<int64_t>(kLength, 64 * static_cast<int64_t>(block)); ++key) {
      double score = 0;
      for (int64_t e = 0; e < kDim; ++e) {
        score += static_cast<double>(drawn.q[static_cast<std::size_t>((kLength - 1) * kDim + e)]) *
                 static_cast<double>(drawn.k[static_cast<std::size_t>(key * kDim + e)]);
      }
      scores.push_back(score / std::sqrt(static_cast<double>(kDim)));
    }
    const double most = *std::ranges::max_element(scores);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - most);
    EXPECT_NEAR(std::stod(notes[block][1]), most, 1e-3);
    EXPECT_NEAR(std::stod(notes[block][2]), sum, 1e-2);
  }
}

}  // namespace operator_draw_test
}  // namespace trireme::ops
