#include "trireme/ops/attention/draw/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "trireme/base/error.h"
#include "trireme/ops/attention/blocks.h"

namespace trireme::ops {
namespace {

using internal::kBlock;
using internal::ScoreBlock;

std::string range_text(int64_t first, int64_t last) { return fmt::format("{}…{}", first, last - 1); }

// The computation of attention_forward.cpp, block by block, with a note of what the last query has after each.
class AttentionSteps {
 public:
  explicit AttentionSteps(AttentionDrawing& it) : it_(it), kernels_(internal::matmul_kernels()) {
    k_.pack(kernels_, it.k.data(), it.shape.dim, it.shape.keys, it.shape.dim, true);
    v_.pack(kernels_, it.v.data(), it.shape.dim, it.shape.keys, it.shape.dim, false);
  }

  void run() {
    for (int64_t query = 0; query < it_.shape.queries; query += kBlock) block_of_queries(query);
  }
  // Of the last query.
  const std::vector<std::vector<std::string>>& notes() const { return notes_; }
  double last_sum() const { return last_sum_; }

 private:
  void block_of_queries(int64_t query) {
    const AttentionShape& shape = it_.shape;
    const int64_t dim = shape.dim, rows = std::min(kBlock, shape.queries - query);
    const bool last = query + rows == shape.queries;
    AlignedFloats scores(kBlock * kBlock), output(kBlock * dim);
    float m[kBlock], l[kBlock], shrink[kBlock];
    std::fill_n(m, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(l, rows, 0.0f);
    const int64_t end = shape.causal ? std::min(shape.keys, query + rows) : shape.keys;
    for (int64_t key = 0; key < end; key += kBlock) {
      const ScoreBlock block = internal::score_block(shape, 0, query, key);
      product(rows, block.columns, dim, it_.q.data() + query * dim, dim, k_.block(key / kBlock), scores.data(), kBlock,
              false);
      internal::score_weights(block, scores.data(), m, l, shrink);
      if (key > 0) internal::scale_rows(rows, dim, output.data(), dim, shrink);
      product(rows, dim, block.columns, scores.data(), kBlock, v_.block(key / kBlock), output.data(), dim, key > 0);
      if (last) note(block, m[rows - 1], l[rows - 1], shrink[rows - 1], output.data() + (rows - 1) * dim);
    }
    if (last) last_sum_ = static_cast<double>(shape.scale * m[rows - 1] + std::log(l[rows - 1]));
    for (int64_t row = 0; row < rows; ++row) shrink[row] = 1 / l[row];
    internal::scale_rows(rows, dim, output.data(), dim, shrink);
    std::copy_n(output.data(), rows * dim, it_.output.data() + query * dim);
  }

  void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride, const float* packed, float* c,
               int64_t c_stride, bool add) const {
    internal::tiled_product_alone(
        kernels_, {.m = m, .n = n, .k = k, .a = {a, a_stride}, .c = c, .c_stride = c_stride, .accumulate = add},
        packed);
  }

  void note(const ScoreBlock& block, float m, float l, float shrink, const float* output) {
    const auto text = [](float x) { return drawn_number(static_cast<double>(x)); };
    std::vector<std::string> row{range_text(block.key, block.key + block.columns), text(it_.shape.scale * m), text(l),
                                 notes_.empty() ? "-" : text(shrink)};
    for (int64_t e = 0; e < it_.shape.dim; ++e) row.push_back(text(output[e]));
    notes_.push_back(std::move(row));
  }

  AttentionDrawing& it_;
  const internal::MatmulKernels& kernels_;
  internal::PackedBlocks k_, v_;
  std::vector<std::vector<std::string>> notes_;
  double last_sum_ = 0;
};

// Which blocks of scores there are, in the order in which they are computed.
DrawnGrid grid_of_blocks(const AttentionShape& shape, int64_t& computed) {
  DrawnGrid grid{"blocks of queries × blocks of keys, in their order", {{"queries"}}};
  const int64_t blocks = internal::block_count(shape.keys);
  for (int64_t j = 0; j < blocks; ++j)
    grid.rows[0].push_back(range_text(j * kBlock, std::min((j + 1) * kBlock, shape.keys)));
  grid.hues.emplace_back(blocks + 1, -1);
  for (int64_t i = 0; i < blocks; ++i) {
    auto& row = grid.rows.emplace_back();
    auto& hues = grid.hues.emplace_back(1, -1);
    row.push_back(grid.rows[0][static_cast<std::size_t>(i + 1)]);
    for (int64_t j = 0; j < blocks; ++j) {
      const bool seen = !shape.causal || j <= i, diagonal = shape.causal && j == i;
      row.push_back(!seen ? "·" : fmt::format("{}{}", ++computed, diagonal ? "◣" : ""));
      hues.push_back(!seen ? -1 : drawn_hue(diagonal ? 1 : 0));
    }
  }
  return grid;
}

AttentionDrawing attention_example(int64_t length, int64_t dim, bool causal) {
  AttentionDrawing it;
  it.shape = {.batch = 1,
              .heads = 1,
              .queries = length,
              .keys = length,
              .dim = dim,
              .causal = causal,
              .scale = 1 / std::sqrt(static_cast<float>(dim))};
  // Scores grow along the keys, so that later blocks change the largest.
  for (int64_t i = 0; i < length * dim; ++i) {
    it.q.push_back(static_cast<float>((7 * i + 3) % 10) * 0.2f);
    it.k.push_back(static_cast<float>((3 * i + 1) % 7) * 0.3f - 0.9f +
                   static_cast<float>(i / dim) / static_cast<float>(length));
    it.v.push_back(static_cast<float>((5 * i + 2) % 9) - 4);
  }
  it.output.resize(it.q.size());
  return it;
}

}  // namespace

AttentionDrawing draw_attention(int64_t length, int64_t dim, bool causal) {
  if (length < 1 || length > kMostDrawnLength || dim < 1 || dim > kMostDrawnDim) {
    throw ConfigError(fmt::format("attention of {} places of {} numbers cannot be drawn; up to {} of {} can", length,
                                  dim, kMostDrawnLength, kMostDrawnDim));
  }
  AttentionDrawing it = attention_example(length, dim, causal);
  AttentionSteps steps(it);
  steps.run();
  const AttentionShape& shape = it.shape;
  it.drawing.title =
      fmt::format("{}attention of {} queries and keys of {} numbers", causal ? "causal " : "", length, dim);
  it.drawing.summary =
      "One head: softmax(scale · Q·Kᵀ)·V by blocks with online softmax, by the functions that training runs.";

  int64_t computed = 0;
  DrawnGrid blocks = grid_of_blocks(shape, computed);
  const int64_t side = internal::block_count(length);
  it.drawing.steps.push_back(
      {fmt::format("Queries and keys are cut into blocks of {}. {} of {} blocks of scores are computed{}. One block of "
                   "{} numbers is there at a time, never all {} scores.",
                   kBlock, computed, side * side,
                   causal ? ": a query sees no later key, so that blocks above the diagonal (·) are skipped and those "
                            "on it (◣) seen in part"
                          : "",
                   kBlock * kBlock, length * length),
       {std::move(blocks)}});

  DrawnGrid table{fmt::format("query {} after each block of keys", length - 1), {{"keys", "m", "l", "e^(m'-m)"}}};
  for (int64_t e = 0; e < dim; ++e) table.rows[0].push_back(fmt::format("O{}", e));
  table.rows.insert(table.rows.end(), steps.notes().begin(), steps.notes().end());
  it.drawing.steps.push_back(
      {"The last query meets its keys block by block. m is the largest score so far, times the scale; l the sum of "
       "e^(score - m); O the sum of e^(score - m)·V. Where a block brings a larger m, what was summed before is "
       "multiplied by e^(m' - m), m' the m before.",
       {std::move(table)}});

  it.drawing.steps.push_back(
      {fmt::format("At the end O / l. Beside the output one number a query is kept for backward: m + ln l, here {}.",
                   drawn_number(steps.last_sum())),
       {grid_of_numbers("O / l", 1, dim, it.output.data() + (length - 1) * dim, dim)}});

  std::vector<float> output(it.output.size()), sums(static_cast<std::size_t>(length));
  attention_forward(shape, {{it.q.data(), 0, 0, dim},
                            {it.k.data(), 0, 0, dim},
                            {it.v.data(), 0, 0, dim},
                            {output.data(), 0, 0, dim},
                            sums.data()});
  double off = 0;
  for (std::size_t i = 0; i < output.size(); ++i)
    off = std::max(off, std::abs(static_cast<double>(output[i]) - static_cast<double>(it.output[i])));
  it.drawing.steps.push_back(
      {fmt::format("All outputs, by {:.0f} multiplications for the places that are seen; the operator's own result "
                   "differs by {:g}. Kept: {} numbers; the scores would be {}.",
                   shape.forward_flops() / 2, off, length, length * length),
       {grid_of_numbers(length > 4 ? "the last four rows" : "O / l", std::min<int64_t>(length, 4), dim,
                        it.output.data() + std::max<int64_t>(0, length - 4) * dim, dim)}});
  return it;
}

}  // namespace trireme::ops
