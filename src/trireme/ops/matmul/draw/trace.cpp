#include "trireme/ops/matmul/draw/trace.h"

#include <map>
#include <utility>

#include "trireme/ops/matmul/tiled.h"

namespace trireme::ops {
namespace {

using internal::MatmulKernels;
using internal::TileCall;

class MatmulRecorder {
 public:
  explicit MatmulRecorder(MatmulTrace& trace) : trace_(trace), real_(internal::matmul_kernels()) { current() = this; }
  ~MatmulRecorder() { current() = nullptr; }
  MatmulRecorder(const MatmulRecorder&) = delete;
  MatmulRecorder& operator=(const MatmulRecorder&) = delete;

  static MatmulRecorder*& current() {
    thread_local MatmulRecorder* it = nullptr;
    return it;
  }
  const MatmulKernels& real() const { return real_; }

  void tile(int width, int64_t rows, bool in_place, const TileCall& call) {
    const int64_t at = call.c - trace_.c.data(), i = at / trace_.n, j = at % trace_.n;
    int64_t& l = depth_[{i, j}];
    const int64_t lanes = width == 0 ? real_.lanes : width * real_.panel;
    trace_.events.push_back({.i = i,
                             .rows = rows,
                             .j = j,
                             .columns = call.columns,
                             .l = l,
                             .depth = call.k,
                             .lanes = lanes,
                             .in_place = in_place,
                             .add = call.add});
    l += call.k;
  }

  // `lines` of the source along k, each with `count` numbers; or the other way round where they are turned.
  void pack(const float* source, int64_t k, int64_t count) {
    const int64_t in_a = source - trace_.a.data(), in_b = source - trace_.b.data();
    if (in_a >= 0 && in_a < static_cast<int64_t>(trace_.a.size())) {
      trace_.events.push_back(
          {.kind = MatmulEvent::Kind::pack_a, .i = in_a / trace_.k, .rows = count, .l = in_a % trace_.k, .depth = k});
    } else {
      trace_.events.push_back({.kind = MatmulEvent::Kind::pack_b,
                               .j = in_b % trace_.n,
                               .columns = count,
                               .l = in_b / trace_.n,
                               .depth = k});
    }
  }

 private:
  MatmulTrace& trace_;
  const MatmulKernels& real_;
  std::map<std::pair<int64_t, int64_t>, int64_t> depth_;  // of a place in c: how much of k it has
};

template <int kWidth, int kRows, bool kInPlace>
void recorded_tile(const TileCall& call) {
  MatmulRecorder& recorder = *MatmulRecorder::current();
  recorder.tile(kWidth, kRows, kInPlace, call);
  const MatmulKernels& real = recorder.real();
  (kInPlace ? real.tile_in_place : real.tile)[kWidth][kRows](call);
}

template <int kWidth, int... kRows>
void record_tiles(MatmulKernels& kernels, std::integer_sequence<int, kRows...>) {
  const MatmulKernels& real = internal::matmul_kernels();
  ((kernels.tile[kWidth][kRows] = real.tile[kWidth][kRows] == nullptr ? nullptr : recorded_tile<kWidth, kRows, false>,
    kernels.tile_in_place[kWidth][kRows] =
        real.tile_in_place[kWidth][kRows] == nullptr ? nullptr : recorded_tile<kWidth, kRows, true>),
   ...);
}

MatmulKernels recording_kernels() {
  MatmulKernels kernels = internal::matmul_kernels();
  constexpr auto kAllRows = std::make_integer_sequence<int, internal::kMostTileRows + 1>();
  record_tiles<0>(kernels, kAllRows);
  record_tiles<1>(kernels, kAllRows);
  record_tiles<2>(kernels, kAllRows);
  static_assert(internal::kTileWidths == 3);
  kernels.copy = [](const float* source, int64_t stride, int64_t k, int64_t count, int64_t width, float* out) {
    MatmulRecorder::current()->pack(source, k, count);
    MatmulRecorder::current()->real().copy(source, stride, k, count, width, out);
  };
  kernels.transpose = [](const float* source, int64_t stride, int64_t k, int64_t count, int64_t width, float* out) {
    MatmulRecorder::current()->pack(source, k, count);
    MatmulRecorder::current()->real().transpose(source, stride, k, count, width, out);
  };
  kernels.copy_panels = [](const float* source, int64_t stride, int64_t k, int64_t count, float* out) {
    const MatmulKernels& real = MatmulRecorder::current()->real();
    MatmulRecorder::current()->pack(source, k, count * real.panel);
    real.copy_panels(source, stride, k, count, out);
  };
  return kernels;
}

std::vector<float> matmul_numbers(int64_t count, int64_t by) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    numbers[static_cast<std::size_t>(i)] = static_cast<float>((by * i + 3) % 16) * 0.125f - 1;
  return numbers;
}

}  // namespace

MatmulTrace trace_matmul(int64_t m, int64_t n, int64_t k) {
  MatmulTrace trace{.m = m, .n = n, .k = k};
  trace.a = matmul_numbers(m * k, 5);
  trace.b = matmul_numbers(k * n, 7);
  trace.c.resize(static_cast<std::size_t>(m * n));
  const MatmulRecorder recorder(trace);
  const MatmulKernels kernels = recording_kernels();
  trace.lanes = kernels.lanes, trace.panel = kernels.panel;
  trace.rows = kernels.rows, trace.wide_rows = kernels.wide_rows;
  internal::tiled_product_alone(
      kernels,
      {.m = m, .n = n, .k = k, .a = {trace.a.data(), k}, .b = {trace.b.data(), n}, .c = trace.c.data(), .c_stride = n},
      nullptr);
  return trace;
}

}  // namespace trireme::ops
