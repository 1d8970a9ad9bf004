// Speeds of the algorithms of convolution on one shape after the other, interleaved: GFLOP/s counted as the definition,
// in brackets those predicted, the likely fastest first.
//   ops_bench [threads] [only this algorithm]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "trireme/ops/conv/choice.h"
#include "trireme/ops/parallel.h"

using namespace trireme::ops;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

float* floats(int64_t count) {
  auto* data = static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>((count * 4 + 127) / 64 * 64)));
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 7) * 0.25f - 0.75f;
  return data;
}

void bench(const ConvShape& shape, const std::string& only) {
  const ConvTensors tensors{floats(shape.input_size()), floats(shape.weight_size()), floats(shape.output_size())};
  fmt::print("batch {} {:>3} ch {:>2}x{:<2} -> {:>3} k{} s{} g{}:", shape.batch, shape.in_channels, shape.height,
             shape.width, shape.out_channels, shape.kernel[0], shape.stride[0], shape.groups);
  for (const Pass pass : kPasses) {
    std::map<std::string_view, double> best;
    for (int round = 0; round < 5; ++round) {
      for (const ConvAlgorithm* algorithm : conv_algorithms().subspan(1)) {
        if (!algorithm->takes(shape, pass) || (!only.empty() && algorithm->name() != only)) continue;
        const int64_t size = algorithm->cost(shape, pass).workspace;
        static std::vector<std::byte> memory;
        if (static_cast<int64_t>(memory.size()) < size + 64) memory.resize(static_cast<std::size_t>(size + 64));
        std::byte* at = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        for (int again = 0; again < 3; ++again) {
          const double begin = now();
          algorithm->run(shape, pass, tensors, {at, static_cast<std::size_t>(size)});
          const double time = now() - begin;
          auto& kept = best.try_emplace(algorithm->name(), time).first->second;
          kept = std::min(kept, time);
        }
      }
    }
    fmt::print("  | {}", name(pass));
    const auto picks = guess_conv(shape, pass);
    for (const ConvPick& it : picks) {
      const auto at = best.find(it.algorithm->name());
      if (at == best.end()) continue;
      fmt::print(" {} {:.0f} ({:.0f})", at->first, shape.flops() / at->second / 1e9,
                 shape.flops() / it.predicted / 1e9);
    }
    double least = 1e9;
    for (const auto& [algorithm, time] : best) least = std::min(least, time);
    if (const auto at = best.find(picks.front().algorithm->name()); at != best.end() && at->second > 1.1 * least) {
      fmt::print(" [guess {:.0f} % slower]", 100 * (at->second / least - 1));
    }
  }
  fmt::print("\n");
  std::fflush(stdout);
  std::free(tensors.input);
  std::free(tensors.weight);
  std::free(tensors.output);
}

}  // namespace

int main(int count, char** words) {
  set_threads(count > 1 ? std::atoi(words[1]) : 1);
  const std::string only = count > 2 ? words[2] : "";
  const auto square = [&](int64_t batch, int64_t channels, int64_t size, int64_t filters, int64_t kernel,
                          int64_t stride = 1) {
    bench({.batch = batch,
           .in_channels = channels,
           .height = size,
           .width = size,
           .out_channels = filters,
           .kernel = {kernel, kernel},
           .stride = {stride, stride},
           .padding = {kernel / 2, kernel / 2}},
          only);
  };
  square(16, 64, 32, 64, 3);
  square(16, 128, 16, 128, 3);
  square(16, 256, 8, 256, 3);
  square(16, 512, 4, 512, 3);
  square(16, 3, 32, 64, 3);
  square(16, 64, 32, 128, 3, 2);
  square(16, 256, 8, 512, 3, 2);
  square(16, 64, 32, 128, 1, 2);
  square(16, 256, 8, 256, 1);
  square(32, 16, 32, 16, 3);
  square(32, 32, 16, 32, 3);
  square(32, 64, 8, 64, 3);
  square(16, 3, 64, 64, 7, 2);
  square(64, 1, 28, 6, 5);
  square(64, 6, 12, 16, 5);
  square(16, 64, 32, 64, 7);
}
