// Convolution by its definition (the reference): for each output y[n, p, q, k] the sum over the kernel's places (r, s)
// and the group's channels c of x[n, p·stride + r·dilation − padding, …, c] · w[k, c, r, s]; the gradients by the same
// products. Cost: as many multiplications as the definition has; no workspace. Sums in f64.
#include <vector>

#include "trireme/ops/conv/algorithms.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops {
namespace {

// Calls body(input offset, r, s) for the places of the kernel that lie within the image, of output (n, p, q); the
// offset is of the group's first channel.
template <class Body>
void each_place(const ConvShape& shape, int64_t n, int64_t p, int64_t q, int64_t group, Body&& body) {
  for (int64_t r = 0; r < shape.kernel[0]; ++r) {
    const int64_t h = p * shape.stride[0] + r * shape.dilation[0] - shape.padding[0];
    if (h < 0 || h >= shape.height) continue;
    for (int64_t s = 0; s < shape.kernel[1]; ++s) {
      const int64_t w = q * shape.stride[1] + s * shape.dilation[1] - shape.padding[1];
      if (w < 0 || w >= shape.width) continue;
      body(((n * shape.height + h) * shape.width + w) * shape.in_channels + group * (shape.in_channels / shape.groups),
           r, s);
    }
  }
}

constexpr double kSlots = 60;  // of a product in f64, one at a time

int64_t weight_at(const ConvShape& shape, int64_t k, int64_t c, int64_t r, int64_t s) {
  return ((k * (shape.in_channels / shape.groups) + c) * shape.kernel[0] + r) * shape.kernel[1] + s;
}

class Direct final : public ConvAlgorithm {
 public:
  std::string_view name() const override { return "direct"; }
  std::string_view what() const override { return "loops of the definition, summed in f64: the reference"; }
  bool takes(const ConvShape&, Pass) const override { return true; }

  OpCost cost(const ConvShape& shape, Pass) const override {
    const double products = shape.flops() / 2;
    return {.multiplications = products,
            .additions = products,
            .slots = kSlots * products,
            .bytes = 4.0 * static_cast<double>(shape.input_size() + shape.output_size() + shape.weight_size())};
  }

  void run(const ConvShape& shape, Pass pass, const ConvTensors& tensors, std::span<std::byte>) const override {
    switch (pass) {
      case Pass::forward:
        return forward(shape, tensors);
      case Pass::data:
        return data(shape, tensors);
      case Pass::weights:
        return weights(shape, tensors);
    }
  }

 private:
  static void forward(const ConvShape& shape, const ConvTensors& tensors) {
    const int64_t channels = shape.in_channels / shape.groups, filters = shape.out_channels / shape.groups;
    const int64_t rows = shape.out_height(), columns = shape.out_width();
    parallel(shape.batch * rows, [&](int64_t row) {
      const int64_t n = row / rows, p = row % rows;
      for (int64_t q = 0; q < columns; ++q) {
        for (int64_t k = 0; k < shape.out_channels; ++k) {
          double sum = tensors.bias != nullptr ? tensors.bias[k] : 0.0;
          each_place(shape, n, p, q, k / filters, [&](int64_t at, int64_t r, int64_t s) {
            for (int64_t c = 0; c < channels; ++c) {
              sum += static_cast<double>(tensors.input[at + c]) * tensors.weight[weight_at(shape, k, c, r, s)];
            }
          });
          tensors.output[(row * columns + q) * shape.out_channels + k] = static_cast<float>(sum);
        }
      }
    });
  }

  // Each element of the input's gradient gathers the outputs that it took part in.
  static void data(const ConvShape& shape, const ConvTensors& tensors) {
    const int64_t channels = shape.in_channels / shape.groups, filters = shape.out_channels / shape.groups;
    const int64_t rows = shape.out_height(), columns = shape.out_width();
    parallel(shape.batch * shape.height, [&](int64_t row) {
      const int64_t n = row / shape.height, h = row % shape.height;
      for (int64_t w = 0; w < shape.width; ++w) {
        for (int64_t c = 0; c < shape.in_channels; ++c) {
          double sum = 0;
          for (int64_t r = 0; r < shape.kernel[0]; ++r) {
            const int64_t down = h + shape.padding[0] - r * shape.dilation[0];
            if (down < 0 || down % shape.stride[0] != 0 || down / shape.stride[0] >= rows) continue;
            for (int64_t s = 0; s < shape.kernel[1]; ++s) {
              const int64_t right = w + shape.padding[1] - s * shape.dilation[1];
              if (right < 0 || right % shape.stride[1] != 0 || right / shape.stride[1] >= columns) continue;
              const int64_t at =
                  ((n * rows + down / shape.stride[0]) * columns + right / shape.stride[1]) * shape.out_channels;
              for (int64_t k = c / channels * filters; k < (c / channels + 1) * filters; ++k) {
                sum += static_cast<double>(tensors.output[at + k]) *
                       tensors.weight[weight_at(shape, k, c % channels, r, s)];
              }
            }
          }
          tensors.input[(row * shape.width + w) * shape.in_channels + c] = static_cast<float>(sum);
        }
      }
    });
  }

  static void weights(const ConvShape& shape, const ConvTensors& tensors) {
    const int64_t channels = shape.in_channels / shape.groups, filters = shape.out_channels / shape.groups;
    const int64_t rows = shape.out_height(), columns = shape.out_width();
    const int64_t places = shape.kernel[0] * shape.kernel[1];
    parallel(shape.out_channels, [&](int64_t k) {
      std::vector<double> sums(static_cast<std::size_t>(channels * places));
      for (int64_t row = 0; row < shape.batch * rows; ++row) {
        for (int64_t q = 0; q < columns; ++q) {
          const double gradient = tensors.output[(row * columns + q) * shape.out_channels + k];
          each_place(shape, row / rows, row % rows, q, k / filters, [&](int64_t at, int64_t r, int64_t s) {
            for (int64_t c = 0; c < channels; ++c) {
              sums[static_cast<std::size_t>(c * places + r * shape.kernel[1] + s)] += gradient * tensors.input[at + c];
            }
          });
        }
      }
      for (int64_t i = 0; i < channels * places; ++i) {
        tensors.weight[k * channels * places + i] = static_cast<float>(sums[static_cast<std::size_t>(i)]);
      }
    });
  }
};

}  // namespace

const ConvAlgorithm& direct_conv() {
  static const Direct direct;
  return direct;
}

}  // namespace trireme::ops
