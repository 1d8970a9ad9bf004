#include "trireme/ops/attention/blocks.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace {

using internal::block_count;
using internal::kBlock;
using internal::MatmulKernels;
using internal::ScoreBlock;
using internal::tiled_product_alone;

// One core's; the head's factors packed for each product that they are the right-hand side of.
struct BackwardBlocks {
  internal::PackedBlocks k_turned, v_turned;  // of S = Q·Kᵀ and dO·Vᵀ
  internal::PackedBlocks k;                   // of dQ += dS·K
  internal::PackedBlocks q, d_output;         // of dK += dSᵀ·Q and dV += Pᵀ·dO
  AlignedFloats inner;                        // D of each query
  AlignedFloats scores{kBlock * kBlock}, d_scores{kBlock * kBlock};
};

// Which results a part makes.
enum class Wanted { all, keys, queries };

class HeadBackward {
 public:
  HeadBackward(const AttentionShape& shape, const AttentionBackward& tensors, int64_t head, BackwardBlocks& own)
      : shape_(shape),
        tensors_(tensors),
        head_(head),
        b_(head / shape.heads),
        h_(head % shape.heads),
        own_(own),
        kernels_(internal::matmul_kernels()) {
    const int64_t dim = shape.dim;
    const auto pack = [&](internal::PackedBlocks& to, const HeadsView<const float>& x, int64_t length, bool turned) {
      to.pack(kernels_, x.of(b_, h_), x.step, length, dim, turned);
    };
    pack(own.k_turned, tensors.k, shape.keys, true);
    pack(own.v_turned, tensors.v, shape.keys, true);
    pack(own.k, tensors.k, shape.keys, false);
    pack(own.q, tensors.q, shape.queries, false);
    pack(own.d_output, tensors.d_output, shape.queries, false);
    own.inner.grow(shape.queries);
    internal::row_products(shape.queries, dim, tensors.d_output.of(b_, h_), tensors.d_output.step,
                           tensors.output.of(b_, h_), tensors.output.step, own.inner.data());
  }

  // The blocks of keys first … last − 1, each with all queries that see it.
  void keys(int64_t first, int64_t last, Wanted wanted) {
    for (int64_t j = first; j < last; ++j) {
      const int64_t from = shape_.causal ? j : 0;
      for (int64_t i = from; i < block_count(shape_.queries); ++i) block(i, j, i == from, wanted);
    }
  }
  // One block of queries with all keys that it sees.
  void queries(int64_t i) {
    const int64_t end = shape_.causal ? i + 1 : block_count(shape_.keys);
    for (int64_t j = 0; j < end; ++j) block(i, j, false, Wanted::queries);
  }

 private:
  void block(int64_t i, int64_t j, bool first_query, Wanted wanted) {
    const int64_t dim = shape_.dim, query = i * kBlock, key = j * kBlock;
    const ScoreBlock block = internal::score_block(shape_, head_, query, key);
    float *s = own_.scores.data(), *d = own_.d_scores.data();
    const auto& [q, k, v, output, sums, d_output, d_q, d_k, d_v] = tensors_;
    product(block.rows, block.columns, dim, {q.of(b_, h_) + query * q.step, q.step}, own_.k_turned.block(j), s, kBlock,
            false);
    product(block.rows, block.columns, dim, {d_output.of(b_, h_) + query * d_output.step, d_output.step},
            own_.v_turned.block(j), d, kBlock, false);
    internal::score_gradients(block, s, d, sums + head_ * shape_.queries + query, own_.inner.data() + query);
    if (wanted != Wanted::keys) {
      product(block.rows, dim, block.columns, {d, kBlock}, own_.k.block(j), d_q.of(b_, h_) + query * d_q.step, d_q.step,
              j > 0);
    }
    if (wanted != Wanted::queries) {
      product(block.columns, dim, block.rows, {s, kBlock, true}, own_.d_output.block(i),
              d_v.of(b_, h_) + key * d_v.step, d_v.step, !first_query);
      product(block.columns, dim, block.rows, {d, kBlock, true}, own_.q.block(i), d_k.of(b_, h_) + key * d_k.step,
              d_k.step, !first_query);
    }
  }

  void product(int64_t m, int64_t n, int64_t k, Matrix a, const float* packed, float* c, int64_t c_stride, bool add) {
    tiled_product_alone(kernels_, {.m = m, .n = n, .k = k, .a = a, .c = c, .c_stride = c_stride, .accumulate = add},
                        packed);
  }

  const AttentionShape& shape_;
  const AttentionBackward& tensors_;
  int64_t head_, b_, h_;
  BackwardBlocks& own_;
  const MatmulKernels& kernels_;
};

void clear_view(const AttentionShape& shape, const HeadsView<float>& view, int64_t length) {
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t h = 0; h < shape.heads; ++h) {
      for (int64_t i = 0; i < length; ++i) std::fill_n(view.of(b, h) + i * view.step, shape.dim, 0.0f);
    }
  }
}

}  // namespace

void attention_backward(const AttentionShape& shape, const AttentionBackward& tensors) {
  check(shape);
  const int64_t all = shape.batch * shape.heads, team = threads();
  const int64_t key_blocks = block_count(shape.keys), query_blocks = block_count(shape.queries);
  if (shape.queries == 0 || shape.keys == 0) {
    clear_view(shape, tensors.d_q, shape.queries);
    clear_view(shape, tensors.d_k, shape.keys);
    clear_view(shape, tensors.d_v, shape.keys);
    return;
  }
  const auto with_head = [&](int64_t head, auto&& body) {
    thread_local BackwardBlocks own;
    body(HeadBackward(shape, tensors, head, own));
  };
  if (all >= team) {
    return parallel(
        all, [&](int64_t head) { with_head(head, [&](HeadBackward&& it) { it.keys(0, key_blocks, Wanted::all); }); });
  }
  // Too few heads for all cores: blocks of keys beside each other, then blocks of queries, which compute the scores
  // again; each result's sums run in the same order.
  parallel(all * key_blocks, [&](int64_t part) {
    const int64_t j = part % key_blocks;
    with_head(part / key_blocks, [&](HeadBackward&& it) { it.keys(j, j + 1, Wanted::keys); });
  });
  parallel(all * query_blocks, [&](int64_t part) {
    with_head(part / query_blocks, [&](HeadBackward&& it) { it.queries(part % query_blocks); });
  });
}

}  // namespace trireme::ops
