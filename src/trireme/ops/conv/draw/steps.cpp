#include "trireme/ops/conv/draw/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trireme/base/error.h"
#include "trireme/ops/aligned.h"
#include "trireme/ops/conv/im2col/window.h"
#include "trireme/ops/conv/kernels/product_kernels.h"
#include "trireme/ops/conv/tiled/tiled_conv.h"

namespace trireme::ops {
namespace {

using conv_kernels::kStrip;

// One picture, one filter, and what an algorithm makes of them.
struct Example {
  ConvShape shape;
  std::vector<float> input, weight, output;
  float bias = 0;
};

DrawnGrid grid_of(std::string label, int64_t rows, int64_t columns, const auto& at) {
  DrawnGrid grid{std::move(label), {}};
  for (int64_t i = 0; i < rows; ++i) {
    auto& row = grid.rows.emplace_back();
    for (int64_t j = 0; j < columns; ++j) row.push_back(at(i, j));
  }
  return grid;
}

DrawnGrid grid_of(std::string label, const std::vector<float>& numbers, int64_t columns) {
  return grid_of(std::move(label), static_cast<int64_t>(numbers.size()) / columns, columns, [&](int64_t i, int64_t j) {
    return drawn_number(numbers[static_cast<std::size_t>(i * columns + j)]);
  });
}

Example example_of(std::array<int64_t, 2> input, std::array<int64_t, 2> kernel) {
  Example it;
  it.shape = {.batch = 1, .in_channels = 1, .height = input[0], .width = input[1], .out_channels = 1, .kernel = kernel};
  check(it.shape);
  if (input == std::array<int64_t, 2>{3, 3} && kernel == std::array<int64_t, 2>{2, 2}) {
    it.input = {3, 9, 0, 2, 8, 1, 1, 4, 8};
    it.weight = {8, 9, 4, 4};
    it.bias = 0.06f;
    return it;
  }
  for (int64_t i = 0; i < it.shape.input_size(); ++i) it.input.push_back(static_cast<float>((7 * i + 3) % 10));
  for (int64_t i = 0; i < it.shape.weight_size(); ++i) it.weight.push_back(static_cast<float>((5 * i + 2) % 4 - 1));
  return it;
}

std::vector<float> result_of(const ConvAlgorithm& algorithm, Example it) {
  std::vector<float> output(static_cast<std::size_t>(it.shape.output_size()));
  const int64_t size = algorithm.cost(it.shape, Pass::forward).workspace;
  AlignedFloats memory(size / 4 + 1);
  algorithm.run(it.shape, Pass::forward,
                {.input = it.input.data(), .weight = it.weight.data(), .output = output.data(), .bias = &it.bias},
                {reinterpret_cast<std::byte*>(memory.data()), static_cast<std::size_t>(size)});
  return output;
}

// The first tile through a transform's own functions.
void add_tile_steps(const tiled::Transform& transform, const Example& it, std::vector<DrawnStep>& steps) {
  const int64_t n = transform.n, plane = kStrip, part = kStrip * transform.planes, planes = transform.planes;
  const auto floats = [](int64_t count) {
    AlignedFloats memory(count);
    std::fill_n(memory.data(), count, 0.0f);
    return memory;
  };
  std::vector<float> zeros(kStrip), tile;
  std::vector<const float*> places;
  for (int64_t i = 0; i < n * n; ++i) {
    const bool inside = i / n < it.shape.height && i % n < it.shape.width;
    places.push_back(inside ? &it.input[static_cast<std::size_t>(i / n * it.shape.width + i % n)] : zeros.data());
    tile.push_back(*places.back());
  }
  AlignedFloats data = floats(transform.parts * part), filters = floats(transform.parts * 4 * kStrip);
  AlignedFloats products = floats(transform.parts * part), taps = floats(it.shape.weight_size() * kStrip);
  transform.data({.places = places.data(),
                  .tiles = 1,
                  .channels = 1,
                  .out = data.data(),
                  .part = part,
                  .plane = plane,
                  .tile = part,
                  .strip = kStrip});
  for (int64_t i = 0; i < it.shape.weight_size(); ++i) taps.data()[i * kStrip] = it.weight[static_cast<std::size_t>(i)];
  transform.filters(taps.data(), false, 1,
                    {.first = filters.data(), .part = 4 * kStrip, .row_plane = kStrip, .column_plane = 2 * kStrip});
  for (int64_t e = 0; e < transform.parts; ++e) {
    for (int64_t to = 0; to < planes; ++to) {
      for (int64_t from = 0; from < planes; ++from) {
        products.data()[e * part + to * plane] +=
            data.data()[e * part + from * plane] * filters.data()[e * 4 * kStrip + from * kStrip + to * 2 * kStrip];
      }
    }
  }
  std::vector<float> outputs(static_cast<std::size_t>(transform.outputs[0] * transform.outputs[1]));
  std::vector<float*> out_places;
  for (float& output : outputs) out_places.push_back(&output);
  transform.products({.in = products.data(),
                      .part = part,
                      .plane = plane,
                      .tile = part,
                      .places = out_places.data(),
                      .tiles = 1,
                      .channels = 1,
                      .bias = &it.bias});
  // Real parts lie row by row, spectra column by column.
  const auto elements = [&](std::string label, const float* from, int64_t step, int64_t imaginary) {
    const int64_t columns = planes == 1 ? n : transform.parts / n;
    return grid_of(std::move(label), n, columns, [&](int64_t i, int64_t j) {
      const float* at = from + (planes == 1 ? i * n + j : j * n + i) * step;
      return planes == 1 ? drawn_number(at[0])
                         : fmt::format("{}{:+g}i", drawn_number(at[0]), std::round(at[imaginary] * 1e2) / 1e2);
    });
  };
  const bool real = planes == 1;
  steps.push_back({fmt::format("The first tile of {0} x {0} inputs, zeros beyond the picture, gives {1} x {2} outputs.",
                               n, transform.outputs[0], transform.outputs[1]),
                   {grid_of("d", tile, n), grid_of("w", it.weight, it.shape.kernel[1])}});
  if (real) {
    DrawnStep step{"The transforms' matrices, derived by interpolation in exact fractions.", {}};
    for (const auto& [name, rows] : transform.matrices()) step.grids.push_back({name, rows});
    steps.push_back(std::move(step));
  }
  steps.push_back({real ? "Both are transformed: V = Bᵀ d B, U = G w Gᵀ."
                        : "Both spectra, twice as large as they are; the other half of the columns is conjugate.",
                   {elements(real ? "V" : "D", data.data(), part, plane),
                    elements(real ? "U" : "W, conjugate", filters.data(), 4 * kStrip, 2 * kStrip)}});
  steps.push_back({fmt::format("Element by element: {} products{}, summed over channels where there are more.",
                               transform.parts, real ? "" : ", each of four multiplications"),
                   {elements("M", products.data(), part, plane)}});
  steps.push_back({real ? "Back: Y = Aᵀ M A." : "Back by the inverse transform; what wraps around is left out.",
                   {grid_of("Y", outputs, transform.outputs[1])}});
}

void add_matrix_steps(const Example& it, std::vector<DrawnStep>& steps) {
  const im2col::Window window(im2col::forward_axis(it.shape, 0), im2col::forward_axis(it.shape, 1), 1, 1, 1,
                              kMostDrawn * kMostDrawn);
  std::vector<std::vector<std::string>> rows;
  std::vector<float> copy(static_cast<std::size_t>(window.copied()));
  std::vector<const float*> pixels(static_cast<std::size_t>(window.pixels()));
  for (int64_t number_of = 0; number_of < window.blocks(); ++number_of) {
    const im2col::OutputBlock block = window.block(number_of);
    window.prepare(it.input.data(), block, copy.data(), pixels.data());
    for (int64_t i = 0; i < window.pixels(block); ++i) {
      auto& row = rows.emplace_back();
      for (const int64_t tap : window.taps().offsets) {
        for (int64_t l = 0; l < window.taps().run; ++l)
          row.push_back(drawn_number(pixels[static_cast<std::size_t>(i)][tap + l]));
      }
    }
  }
  steps.push_back({"The picture and the kernel.",
                   {grid_of("x", it.input, it.shape.width), grid_of("w", it.weight, it.shape.kernel[1])}});
  steps.push_back({"What each output reads is a row of a matrix, read in place; the kernel is its right factor.",
                   {{"rows", rows}, grid_of("w", it.weight, 1)}});
}

void add_definition_steps(const Example& it, std::vector<DrawnStep>& steps) {
  std::string sum;
  for (int64_t r = 0; r < it.shape.kernel[0]; ++r) {
    for (int64_t s = 0; s < it.shape.kernel[1]; ++s) {
      sum += fmt::format("{}{}·{}", sum.empty() ? "" : " + ",
                         drawn_number(it.input[static_cast<std::size_t>(r * it.shape.width + s)]),
                         drawn_number(it.weight[static_cast<std::size_t>(r * it.shape.kernel[1] + s)]));
    }
  }
  if (it.bias != 0) sum += fmt::format(" + {}", drawn_number(it.bias));
  steps.push_back({"The picture and the kernel, which is laid over it at each output.",
                   {grid_of("x", it.input, it.shape.width), grid_of("w", it.weight, it.shape.kernel[1])}});
  steps.push_back({fmt::format("The first output: {}.", sum), {}});
}

}  // namespace

OpDrawing draw_conv(const ConvAlgorithm& algorithm, std::array<int64_t, 2> input, std::array<int64_t, 2> kernel) {
  if (std::max({input[0], input[1], kernel[0], kernel[1]}) > kMostDrawn) {
    throw ConfigError(fmt::format("sides of up to {} can be drawn, not more", kMostDrawn));
  }
  Example it = example_of(input, kernel);
  if (!algorithm.takes(it.shape, Pass::forward)) {
    throw ConfigError(
        fmt::format("{} takes no kernel of {}x{}: {}", algorithm.name(), kernel[0], kernel[1], algorithm.what()));
  }
  const ConvAlgorithm& definition = *conv_algorithms().front();
  const double products = algorithm.cost(it.shape, Pass::forward).multiplications;
  OpDrawing drawing{
      fmt::format("convolution of {}x{} by {}x{}, {}", input[0], input[1], kernel[0], kernel[1], algorithm.what()),
      "Its steps on one picture of one channel, from the code that runs.",
      {}};
  const auto* tiled = dynamic_cast<const tiled::TiledConv*>(&algorithm);
  if (tiled != nullptr) {
    add_tile_steps(*tiled->transform(it.shape, Pass::forward), it, drawing.steps);
  } else if (algorithm.cost(it.shape, Pass::forward).workspace > 0) {
    add_matrix_steps(it, drawing.steps);
  } else {
    add_definition_steps(it, drawing.steps);
  }
  const std::vector<float> output = result_of(algorithm, it), right = result_of(definition, it);
  double off = 0;
  for (std::size_t i = 0; i < output.size(); ++i)
    off = std::max(off, std::abs(static_cast<double>(output[i]) - right[i]));
  drawing.steps.push_back(
      {fmt::format("All outputs{}, by {:g} multiplications; the definition takes {:g} and differs by {:.2g} at most.",
                   it.bias != 0 ? fmt::format(", with the bias {}", drawn_number(it.bias)) : "", products,
                   definition.cost(it.shape, Pass::forward).multiplications, off),
       {grid_of("y", output, it.shape.out_width())}});
  return drawing;
}

}  // namespace trireme::ops
