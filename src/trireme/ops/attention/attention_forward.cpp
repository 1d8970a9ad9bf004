#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "trireme/base/error.h"
#include "trireme/ops/attention/blocks.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {

double AttentionShape::forward_flops() const {
  const double places = static_cast<double>(queries) * static_cast<double>(causal ? keys + 1 : keys);
  return 4.0 * static_cast<double>(batch * heads) * static_cast<double>(dim) * (causal ? places / 2 : places);
}

void check(const AttentionShape& shape) {
  if (shape.batch < 0 || shape.queries < 0 || shape.keys < 0)
    throw ConfigError(fmt::format("attention: the batch is {} and the lengths are {} and {}; none can be negative",
                                  shape.batch, shape.queries, shape.keys));
  if (shape.heads < 1 || shape.dim < 1)
    throw ConfigError(
        fmt::format("attention: {} heads of {}; there must be at least one of each", shape.heads, shape.dim));
  if (shape.causal && shape.queries != shape.keys)
    throw ConfigError(
        fmt::format("attention: causal needs as many queries as keys, there are {} and {}", shape.queries, shape.keys));
  if (!(shape.scale > 0)) throw ConfigError(fmt::format("attention: the scale is {}; it must be above 0", shape.scale));
  if (!(shape.dropout >= 0 && shape.dropout < 1))
    throw ConfigError(fmt::format("attention: the dropout is {}; it must be at least 0 and below 1", shape.dropout));
}

namespace {

// One core's.
struct ForwardBlocks {
  internal::PackedBlocks k, v;
  AlignedFloats scores{internal::kBlock * internal::kBlock};
  AlignedFloats output;
  float m[internal::kBlock], l[internal::kBlock], shrink[internal::kBlock];
};

void forward_queries(const AttentionShape& shape, const AttentionForward& tensors, int64_t b, int64_t h, int64_t query,
                     const internal::MatmulKernels& kernels, ForwardBlocks& own) {
  using namespace internal;
  const int64_t dim = shape.dim, head = b * shape.heads + h;
  const int64_t rows = std::min(kBlock, shape.queries - query);
  const float* q = tensors.q.of(b, h) + query * tensors.q.step;
  std::fill_n(own.m, rows, -std::numeric_limits<float>::infinity());
  std::fill_n(own.l, rows, 0.0f);
  const int64_t end = shape.causal ? std::min(shape.keys, query + rows) : shape.keys;
  float* scores = own.scores.data();
  for (int64_t key = 0; key < end; key += kBlock) {
    const ScoreBlock block = score_block(shape, head, query, key);
    tiled_product_alone(
        kernels, {.m = rows, .n = block.columns, .k = dim, .a = {q, tensors.q.step}, .c = scores, .c_stride = kBlock},
        own.k.block(key / kBlock));
    score_weights(block, scores, own.m, own.l, own.shrink);
    if (key > 0) scale_rows(rows, dim, own.output.data(), dim, own.shrink);
    tiled_product_alone(kernels,
                        {.m = rows,
                         .n = dim,
                         .k = block.columns,
                         .a = {scores, kBlock},
                         .c = own.output.data(),
                         .c_stride = dim,
                         .accumulate = key > 0},
                        own.v.block(key / kBlock));
  }
  float* output = tensors.output.of(b, h) + query * tensors.output.step;
  float* sums = tensors.sums + head * shape.queries + query;
  for (int64_t row = 0; row < rows; ++row) {
    sums[row] = shape.scale * own.m[row] + std::log(own.l[row]);
    own.shrink[row] = 1 / own.l[row];
  }
  scale_rows(rows, dim, own.output.data(), dim, own.shrink);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(own.output.data() + row * dim, dim, output + row * tensors.output.step);
}

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionForward& tensors) {
  using namespace internal;
  check(shape);
  const MatmulKernels& kernels = matmul_kernels();
  const int64_t all = shape.batch * shape.heads, blocks = block_count(shape.queries);
  if (shape.keys == 0) {  // an empty sum
    for (int64_t i = 0; i < all * shape.queries; ++i) {
      float* row = tensors.output.of(i / shape.queries / shape.heads, i / shape.queries % shape.heads);
      std::fill_n(row + i % shape.queries * tensors.output.step, shape.dim, 0.0f);
    }
    return;
  }
  // A core takes whole heads where there are enough; else some of a head's blocks, and packs its keys again.
  const int64_t team = threads(),
                shares = all >= 2 * team ? 1 : std::min(blocks, ceil_quotient(2 * team, std::max<int64_t>(all, 1)));
  parallel(all * shares, [&](int64_t part) {
    thread_local ForwardBlocks own;
    const int64_t head = part / shares, share = part % shares, b = head / shape.heads, h = head % shape.heads;
    own.output.grow(kBlock * shape.dim);
    own.k.pack(kernels, tensors.k.of(b, h), tensors.k.step, shape.keys, shape.dim, true);
    own.v.pack(kernels, tensors.v.of(b, h), tensors.v.step, shape.keys, shape.dim, false);
    // Every `shares`th block: causal ones grow.
    for (int64_t block = share; block < blocks; block += shares)
      forward_queries(shape, tensors, b, h, block * kBlock, kernels, own);
  });
}

}  // namespace trireme::ops
