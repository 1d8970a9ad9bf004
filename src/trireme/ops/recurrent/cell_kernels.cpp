#include "trireme/ops/recurrent/cells.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "trireme/ops/recurrent/cell_kernels.cpp"
#include "trireme/base/targets.h"
// After targets.h.
#include "trireme/ops/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace trireme::ops::HWY_NAMESPACE {
using internal::GruBackward;
using internal::GruForward;
using internal::LstmBackward;
using internal::LstmForward;

void lstm_forward_for(int64_t hidden, const LstmForward& row) {
  each_vector(hidden, [&](int64_t j, int64_t lanes) HWY_ATTR {
    float* gates = row.gates + j;
    const auto i = sigmoid(load_lanes(gates, lanes)), f = sigmoid(load_lanes(gates + hidden, lanes));
    const auto g = tanh(load_lanes(gates + 2 * hidden, lanes)), o = sigmoid(load_lanes(gates + 3 * hidden, lanes));
    store_lanes(i, gates, lanes);
    store_lanes(f, gates + hidden, lanes);
    store_lanes(g, gates + 2 * hidden, lanes);
    store_lanes(o, gates + 3 * hidden, lanes);
    const auto c = hn::MulAdd(f, load_lanes(row.c + j, lanes), hn::Mul(i, g));
    store_lanes(c, row.c_after + j, lanes);
    store_lanes(hn::Mul(o, tanh(c)), row.h_after + j, lanes);
  });
}

// d·y·(1 − y), through a sigmoid, and d·(1 − y²), through a tanh.
HWY_INLINE V32 through_sigmoid(V32 d, V32 y) { return hn::Mul(d, hn::NegMulAdd(y, y, y)); }
HWY_INLINE V32 through_tanh(V32 d, V32 y) { return hn::Mul(d, hn::NegMulAdd(y, y, constant(1.0f))); }

HWY_INLINE V32 gradient_of_h(const float* d_output, const float* d_h, int64_t j, int64_t lanes) {
  const auto later = load_lanes(d_h + j, lanes);
  return d_output == nullptr ? later : hn::Add(later, load_lanes(d_output + j, lanes));
}

void lstm_backward_for(int64_t hidden, const LstmBackward& row) {
  each_vector(hidden, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const float* gates = row.gates + j;
    const auto i = load_lanes(gates, lanes), f = load_lanes(gates + hidden, lanes);
    const auto g = load_lanes(gates + 2 * hidden, lanes), o = load_lanes(gates + 3 * hidden, lanes);
    const auto d_h = gradient_of_h(row.d_output, row.d_h, j, lanes);
    const auto t = tanh(load_lanes(row.c_after + j, lanes));
    const auto d_c = hn::Add(load_lanes(row.d_c + j, lanes), through_tanh(hn::Mul(d_h, o), t));
    float* out = row.d_gates + j;
    store_lanes(through_sigmoid(hn::Mul(d_c, g), i), out, lanes);
    store_lanes(through_sigmoid(hn::Mul(d_c, load_lanes(row.c + j, lanes)), f), out + hidden, lanes);
    store_lanes(through_tanh(hn::Mul(d_c, i), g), out + 2 * hidden, lanes);
    store_lanes(through_sigmoid(hn::Mul(d_h, t), o), out + 3 * hidden, lanes);
    store_lanes(hn::Mul(d_c, f), row.d_c + j, lanes);
  });
}

void gru_forward_for(int64_t hidden, const GruForward& row) {
  each_vector(hidden, [&](int64_t j, int64_t lanes) HWY_ATTR {
    float* gates = row.gates + j;
    const auto r = sigmoid(load_lanes(gates, lanes)), z = sigmoid(load_lanes(gates + hidden, lanes));
    const auto n = tanh(hn::MulAdd(r, load_lanes(row.q + j, lanes), load_lanes(gates + 2 * hidden, lanes)));
    store_lanes(r, gates, lanes);
    store_lanes(z, gates + hidden, lanes);
    store_lanes(n, gates + 2 * hidden, lanes);
    store_lanes(hn::MulAdd(z, hn::Sub(load_lanes(row.h + j, lanes), n), n), row.h_after + j, lanes);
  });
}

void gru_backward_for(int64_t hidden, const GruBackward& row) {
  each_vector(hidden, [&](int64_t j, int64_t lanes) HWY_ATTR {
    const float* gates = row.gates + j;
    const auto r = load_lanes(gates, lanes), z = load_lanes(gates + hidden, lanes);
    const auto n = load_lanes(gates + 2 * hidden, lanes), q = load_lanes(row.q + j, lanes);
    const auto d_h = gradient_of_h(row.d_output, row.d_h, j, lanes);
    const auto d_n = through_tanh(hn::NegMulAdd(d_h, z, d_h), n);
    float* out = row.d_gates + j;
    store_lanes(through_sigmoid(hn::Mul(d_n, q), r), out, lanes);
    store_lanes(through_sigmoid(hn::Mul(d_h, hn::Sub(load_lanes(row.h + j, lanes), n)), z), out + hidden, lanes);
    store_lanes(d_n, out + 2 * hidden, lanes);
    store_lanes(hn::Mul(d_n, r), row.d_q + j, lanes);
    store_lanes(hn::Mul(d_h, z), row.d_h + j, lanes);
  });
}

}  // namespace trireme::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace trireme::ops {

HWY_EXPORT(lstm_forward_for);
HWY_EXPORT(lstm_backward_for);
HWY_EXPORT(gru_forward_for);
HWY_EXPORT(gru_backward_for);

namespace internal {

void lstm_forward(int64_t hidden, const LstmForward& row) { HWY_DYNAMIC_DISPATCH(lstm_forward_for)(hidden, row); }
void lstm_backward(int64_t hidden, const LstmBackward& row) { HWY_DYNAMIC_DISPATCH(lstm_backward_for)(hidden, row); }
void gru_forward(int64_t hidden, const GruForward& row) { HWY_DYNAMIC_DISPATCH(gru_forward_for)(hidden, row); }
void gru_backward(int64_t hidden, const GruBackward& row) { HWY_DYNAMIC_DISPATCH(gru_backward_for)(hidden, row); }

}  // namespace internal
}  // namespace trireme::ops
#endif
