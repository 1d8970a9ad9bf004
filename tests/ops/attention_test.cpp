#include "trireme/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/ops/with_threads.h"
#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"

namespace trireme::ops::attention_test {
namespace {

using Floats = std::vector<float>;
std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

// Tensors as a projection leaves them: [batch][place][q, k or v][head][dim], or each [batch][head][place][dim].
struct Problem {
  AttentionShape shape;
  bool beside;
  Floats q, k, v, d_output;

  Problem(const AttentionShape& given, bool side_by_side, unsigned seed) : shape(given), beside(side_by_side) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (auto [x, length] :
         {std::pair(&q, shape.queries), {&k, shape.keys}, {&v, shape.keys}, {&d_output, shape.queries}}) {
      x->resize(at(shape.batch * shape.heads * length * shape.dim));
      for (float& number : *x) number = uniform(random);
    }
  }
  template <class T>
  HeadsView<T> view(T* x, int64_t length) const {
    if (beside) return {x, length * shape.heads * shape.dim, shape.dim, shape.heads * shape.dim};
    return {x, shape.heads * length * shape.dim, length * shape.dim, shape.dim};
  }
};

struct Attended {
  Floats output, sums, d_q, d_k, d_v;

  explicit Attended(const Problem& p)
      : output(p.q.size(), NAN),
        sums(at(p.shape.sums_size()), NAN),
        d_q(p.q.size(), NAN),
        d_k(p.k.size(), NAN),
        d_v(p.v.size(), NAN) {
    const auto q = p.view(p.q.data(), p.shape.queries), k = p.view(p.k.data(), p.shape.keys),
               v = p.view(p.v.data(), p.shape.keys);
    attention_forward(p.shape, {q, k, v, p.view(output.data(), p.shape.queries), sums.data()});
    attention_backward(p.shape, {q, k, v, p.view<const float>(output.data(), p.shape.queries), sums.data(),
                                 p.view(p.d_output.data(), p.shape.queries), p.view(d_q.data(), p.shape.queries),
                                 p.view(d_k.data(), p.shape.keys), p.view(d_v.data(), p.shape.keys)});
  }
};

// By definition in f64; `kept` is what dropout multiplies each weight with.
struct ByDefinition {
  std::vector<double> output, d_q, d_k, d_v;

  ByDefinition(const Problem& p, const std::vector<double>& kept)
      : output(p.q.size()), d_q(p.q.size()), d_k(p.k.size()), d_v(p.v.size()) {
    const auto& s = p.shape;
    const auto place = [&](int64_t length, int64_t b, int64_t h, int64_t i, int64_t e) {
      const auto view = p.view(static_cast<const char*>(nullptr), length);
      return at(b * view.batch + h * view.head + i * view.step + e);
    };
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t h = 0; h < s.heads; ++h) {
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t count = s.causal ? i + 1 : s.keys;
          std::vector<double> weight(at(count)), through(at(count));
          double most = -std::numeric_limits<double>::infinity(), sum = 0, inner = 0;
          const auto zero = at(((b * s.heads + h) * s.queries + i) * s.keys);
          for (int64_t j = 0; j < count; ++j) {
            for (int64_t e = 0; e < s.dim; ++e)
              weight[at(j)] +=
                  static_cast<double>(s.scale) * p.q[place(s.queries, b, h, i, e)] * p.k[place(s.keys, b, h, j, e)];
            most = std::max(most, weight[at(j)]);
          }
          for (double& w : weight) sum += w = std::exp(w - most);
          for (int64_t j = 0; j < count; ++j) {
            weight[at(j)] /= sum;
            for (int64_t e = 0; e < s.dim; ++e) {
              const double d = p.d_output[place(s.queries, b, h, i, e)];
              output[place(s.queries, b, h, i, e)] +=
                  weight[at(j)] * kept[zero + at(j)] * p.v[place(s.keys, b, h, j, e)];
              d_v[place(s.keys, b, h, j, e)] += weight[at(j)] * kept[zero + at(j)] * d;
              through[at(j)] += kept[zero + at(j)] * d * p.v[place(s.keys, b, h, j, e)];
            }
            inner += weight[at(j)] * through[at(j)];
          }
          for (int64_t j = 0; j < count; ++j) {
            const double d_score = static_cast<double>(s.scale) * weight[at(j)] * (through[at(j)] - inner);
            for (int64_t e = 0; e < s.dim; ++e) {
              d_q[place(s.queries, b, h, i, e)] += d_score * p.k[place(s.keys, b, h, j, e)];
              d_k[place(s.keys, b, h, j, e)] += d_score * p.q[place(s.queries, b, h, i, e)];
            }
          }
        }
      }
    }
  }
};

void expect_near(const Floats& got, const std::vector<double>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  double most = 1e-3;
  for (const double x : want) most = std::max(most, std::abs(x));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 4e-6 * most) << what << " " << i;
}

void expect_definition(const Problem& p, const std::vector<double>& kept, const std::string& what) {
  const Attended got(p);
  const ByDefinition want(p, kept);
  expect_near(got.output, want.output, what + " output");
  expect_near(got.d_q, want.d_q, what + " d_q");
  expect_near(got.d_k, want.d_k, what + " d_k");
  expect_near(got.d_v, want.d_v, what + " d_v");
}
std::vector<double> all_kept(const AttentionShape& s) { return std::vector<double>(at(s.sums_size() * s.keys), 1.0); }

AttentionShape shape_of(int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t dim, bool causal) {
  return {.batch = batch,
          .heads = heads,
          .queries = queries,
          .keys = keys,
          .dim = dim,
          .causal = causal,
          .scale = 2 / std::sqrt(static_cast<float>(dim))};
}

TEST(Attention, EqualsTheDefinition) {
  const std::vector<AttentionShape> shapes{shape_of(1, 1, 1, 1, 1, false),     shape_of(2, 3, 5, 9, 7, false),
                                           shape_of(2, 2, 33, 33, 16, true),   shape_of(1, 2, 64, 64, 64, true),
                                           shape_of(1, 1, 200, 70, 20, false), shape_of(1, 3, 201, 201, 33, true)};
  for (const std::string& set : instruction_sets()) {
    set_instruction_set(set);
    for (const AttentionShape& shape : shapes) {
      for (const bool beside : {false, true})
        expect_definition(Problem(shape, beside, 1), all_kept(shape), set + " " + std::to_string(shape.queries));
    }
  }
  set_instruction_set("auto");
}

// What the operator dropped is found by values that count one key each; with it both directions must equal the
// definition, so backward drops the same.
TEST(Attention, DropsTheSameInBothDirections) {
  for (const bool causal : {false, true}) {
    AttentionShape shape = shape_of(2, 2, 90, 90, 90, causal);
    shape.dropout = 0.3f, shape.seed = 7;
    Problem p(shape, false, 2);
    Problem probe = p;
    for (std::size_t i = 0; i < probe.v.size(); ++i) probe.v[i] = i % 90 == i / 90 % 90 ? 1.0f : 0.0f;
    const Attended found(probe);
    std::vector<double> kept = all_kept(shape);
    int64_t dropped = 0, places = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (causal && i % 90 > i / 90 % 90) continue;
      kept[i] = found.output[i] == 0 ? 0 : 1 / (1 - static_cast<double>(shape.dropout));
      dropped += found.output[i] == 0, ++places;
    }
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(places), 0.3, 0.015);
    expect_definition(p, kept, "dropout");
    // Another seed drops others.
    probe.shape.seed = 8;
    const Attended other(probe);
    int64_t differ = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) differ += (other.output[i] == 0) != (found.output[i] == 0);
    EXPECT_NEAR(static_cast<double>(differ) / static_cast<double>(places), 2 * 0.3 * 0.7, 0.03);
  }
}

TEST(Attention, SameBitsOnAnyNumberOfThreads) {
  for (const bool causal : {false, true}) {
    AttentionShape shape = shape_of(1, 2, 150, 150, 24, causal);
    shape.dropout = 0.1f;
    const Problem p(shape, true, 3);
    const auto run = [&](int count) {
      Floats all;
      run_with_threads(count, [&] {
        const Attended it(p);
        for (const Floats* x : {&it.output, &it.d_q, &it.d_k, &it.d_v}) all.insert(all.end(), x->begin(), x->end());
      });
      return all;
    };
    const Floats one = run(1);
    EXPECT_EQ(one, run(2));
    EXPECT_EQ(one, run(6));
  }
}

// Scores whose exponentials no float holds.
TEST(Attention, LargeScores) {
  AttentionShape shape = shape_of(1, 1, 80, 80, 8, true);
  shape.scale = 300;
  const Problem p(shape, false, 4);
  const Attended got(p);
  const ByDefinition want(p, all_kept(shape));
  // An error of the scores' last place is one of their exponentials' leading ones.
  for (std::size_t i = 0; i < want.output.size(); ++i) ASSERT_NEAR(got.output[i], want.output[i], 1e-3);
}

TEST(Attention, EmptyAndBadShapes) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{0, 5}, {5, 0}, {0, 0}}) {
    const Attended got(Problem(shape_of(2, 1, queries, keys, 3, false), true, 5));
    for (const Floats* x : {&got.output, &got.d_q, &got.d_k, &got.d_v}) EXPECT_EQ(*x, Floats(x->size(), 0));
  }
  EXPECT_NO_THROW(Attended(Problem(shape_of(0, 1, 5, 5, 3, true), true, 5)));
  EXPECT_THROW(check(shape_of(1, 1, 5, 6, 3, true)), ConfigError);
  AttentionShape bad = shape_of(1, 1, 5, 5, 3, true);
  bad.dropout = 1;
  EXPECT_THROW(check(bad), ConfigError);
  bad.dropout = 0, bad.scale = 0;
  EXPECT_THROW(check(bad), ConfigError);
}

}  // namespace
}  // namespace trireme::ops::attention_test
