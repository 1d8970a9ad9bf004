// Attention of many heads in f32, forward and backward, without the matrix of scores ever being whole: Dao et al.,
// FlashAttention (2022), on CPU. Runs on the team of the calling thread; the same bits on any number of threads.
//
//   P = softmax(scale · Q·Kᵀ), causal: query i sees keys 0 … i;  O = dropout(P)·V
//
// Forward, for each block of queries: for each block of keys that it sees
//   S = Q·Kᵀ of the blocks; the largest score m and the sum l of each row so far; P = e^(scale·(S − m));
//   O = O·e^(scale·(m before − m)) + dropout(P)·V;       at the end O / l, and scale·m + ln l is kept for backward.
// Backward, for each block of keys, for each block of queries that sees it: P anew from what was kept, and with
//   D = rowsum(dO ∘ O):   dV += dropout(P)ᵀ·dO,  dS = scale · P ∘ (dropout'(dO·Vᵀ) − D),  dQ += dS·K,  dK += dSᵀ·Q
//
// Cost: 2 products of [queries × keys × dim] forward and 5 backward, half of them when causal (blocks nobody sees are
// not computed); memory linear in the length: one number a query beside the results, and blocks in the cores' caches.
#pragma once
#include <cstdint>

namespace trireme::ops {

struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t queries = 0;  // length
  int64_t keys = 0;     // length; causal only where it is that of the queries
  int64_t dim = 0;      // of a head
  bool causal = false;
  float scale = 1;    // of the scores, above 0: 1/√dim
  float dropout = 0;  // the share of P that is set to zero; the rest grows by 1 / (1 − dropout)
  uint64_t seed = 0;  // what is dropped depends on this and the place (batch, head, query, key) alone

  int64_t sums_size() const { return batch * heads * queries; }
  // Two operations a product; of the places that are seen.
  double forward_flops() const;
};

// Throws ConfigError naming what cannot be: sizes below 1 (the batch and the lengths may be 0), causal with two
// lengths, a scale that is not above 0, a dropout outside [0, 1).
void check(const AttentionShape& shape);

// Element (b, h, i, e) lies at data[b · batch + h · head + i · step + e].
template <class T>
struct HeadsView {
  T* data = nullptr;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t step = 0;

  T* of(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

struct AttentionForward {
  HeadsView<const float> q, k, v;
  HeadsView<float> output;
  float* sums = nullptr;  // sums_size(), for backward: ln Σ e^score of each query, [batch][head][query]
};
void attention_forward(const AttentionShape& shape, const AttentionForward& tensors);

struct AttentionBackward {
  HeadsView<const float> q, k, v, output;
  const float* sums = nullptr;
  HeadsView<const float> d_output;
  HeadsView<float> d_q, d_k, d_v;  // overwritten
};
void attention_backward(const AttentionShape& shape, const AttentionBackward& tensors);

}  // namespace trireme::ops
