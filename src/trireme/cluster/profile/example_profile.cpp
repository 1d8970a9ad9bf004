// Profiles that nobody measured, for tests and benchmarks: operations counted, and a speed of 10 Tflop/s.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/base/settings.h"
#include "trireme/cluster/profile/example_layers.h"
#include "trireme/cluster/profile/profile.h"
#include "trireme/compress/codecs.h"

namespace trireme::cluster {
namespace {

constexpr double kFlops = 10e12, kMemory = 500e9;  // a second; bytes a second

Quantiles always(double seconds) { return {seconds, seconds, seconds}; }

// What each codec makes of a tensor, and 10 GB/s to read it.
std::vector<CodecProfile> example_codecs() {
  constexpr std::size_t kRows = 64, kCount = kRows * kRows;
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < kCount; ++i) x[i] = static_cast<float>((i * 7919) % 1013) / 1013.0f - 0.5f;
  std::vector<CodecProfile> all;
  for (const auto& kind : compress::codecs()) {
    const auto choice = compress::Choice::parse(kind.name);
    CodecProfile one{.name = std::string(kind.name)};
    if (!choice.none()) {
      auto codec = choice.make({"example", kCount, kRows, 0}, {});
      std::vector<std::byte> message(codec->most_bytes(kCount));
      const auto bytes = codec->encode(0, x, message.data(), nullptr);
      one = {one.name, 1e-10, 1e-10, static_cast<double>(bytes) / (4.0 * kCount)};
    }
    all.push_back(std::move(one));
  }
  return all;
}

// A matrix product of `batch` · `places` rows.
ExampleLayer product(std::string name, std::size_t in, std::size_t out, double places, int batch, bool splittable) {
  const double flops = 2.0 * static_cast<double>(in) * static_cast<double>(out) * places * batch;
  const auto bytes = static_cast<std::uint64_t>(4 * static_cast<double>(out) * places * batch);
  return {std::move(name), in * out, out, flops / kFlops, 2 * flops / kFlops, bytes, bytes, splittable};
}

std::vector<ExampleLayer> tiny(int batch) {
  std::vector<ExampleLayer> layers;
  const std::array<std::size_t, 5> sizes{64, 128, 128, 64, 10};
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    layers.push_back(product(fmt::format("fc{}", i + 1), sizes[i], sizes[i + 1], 1000, batch, false));
  }
  return layers;
}

std::vector<ExampleLayer> wide_mlp(int batch) {
  std::vector<ExampleLayer> layers{product("fc1", 784, 2048, 1, batch, true)};
  layers.push_back(product("fc2", 2048, 2048, 1, batch, true));
  layers.push_back(product("fc3", 2048, 10, 1, batch, false));
  return layers;
}

// He et al., 2015: stages of 3, 4, 6 and 3 bottlenecks, on images of 224 × 224; normalization as layers of their own.
std::vector<ExampleLayer> resnet50(int batch) {
  std::vector<ExampleLayer> layers;
  auto convolution = [&](const std::string& name, std::size_t in, std::size_t out, std::size_t kernel, double side) {
    layers.push_back(product(name, in * kernel * kernel, out, side * side, batch, false));
    const double bytes = 4.0 * static_cast<double>(out) * side * side * batch;
    layers.push_back({name + ".norm", 2 * out, 1, bytes / kMemory, 2 * bytes / kMemory,
                      static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(bytes), false});
  };
  convolution("conv1", 3, 64, 7, 112);
  std::size_t channels = 64;
  const std::array<int, 4> blocks{3, 4, 6, 3};
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::size_t width = std::size_t{64} << stage;
    const double side = 56.0 / static_cast<double>(1 << stage);
    for (int block = 0; block < blocks[stage]; ++block) {
      const auto name = fmt::format("layer{}.{}", stage + 1, block);
      convolution(name + ".conv1", channels, width, 1, side);
      convolution(name + ".conv2", width, width, 3, side);
      convolution(name + ".conv3", width, 4 * width, 1, side);
      if (block == 0) convolution(name + ".downsample", channels, 4 * width, 1, side);
      channels = 4 * width;
    }
  }
  layers.push_back(product("fc", 2048, 1000, 1, batch, false));
  return layers;
}

// 12 blocks of width 768 on 1,024 symbols (Radford et al., 2019), without the table of symbols.
std::vector<ExampleLayer> gpt(int batch) {
  constexpr std::size_t kWidth = 768;
  constexpr double kLength = 1024;
  std::vector<ExampleLayer> layers;
  for (int block = 0; block < 12; ++block) {
    auto part = [&](const char* name, std::size_t in, std::size_t out) {
      layers.push_back(product(fmt::format("block{}.{}", block, name), in, out, kLength, batch, true));
    };
    part("attention", kWidth, 3 * kWidth);
    part("projection", kWidth, kWidth);
    part("up", kWidth, 4 * kWidth);
    part("down", 4 * kWidth, kWidth);
  }
  return layers;
}

struct Example {
  std::string_view name;
  int batch;
  std::vector<ExampleLayer> (*layers)(int batch);
};
constexpr std::array kExamples{Example{"tiny", 32, tiny}, Example{"wide-mlp", 32, wide_mlp},
                               Example{"resnet50-like", 32, resnet50}, Example{"gpt-like", 8, gpt}};
constexpr std::array kNames{kExamples[0].name, kExamples[1].name, kExamples[2].name, kExamples[3].name};

}  // namespace

Profile example_profile(std::string_view name, std::span<const ExampleLayer> layers, int batch) {
  Profile profile;
  profile.model = name;
  profile.data = "made up";
  profile.device = "cpu";
  profile.machine = "example";
  profile.batch = batch;
  double forward = 0, backward = 0;
  for (const auto& layer : layers) {
    profile.layers.push_back({.name = layer.name,
                              .forward_s = always(layer.forward_s),
                              .backward_s = always(layer.backward_s),
                              .parameter_bytes = 4 * layer.elements,
                              .activation_bytes = layer.activation_bytes,
                              .output_bytes = layer.output_bytes,
                              .splittable = layer.splittable,
                              .fully_connected = layer.splittable,
                              .tensor_bytes = layer.splittable ? 2 * layer.output_bytes : 0});
    forward += layer.forward_s;
  }
  for (std::size_t i = layers.size(); i-- > 0;) {
    backward += layers[i].backward_s;
    if (layers[i].elements == 0) continue;
    profile.gradients.push_back({layers[i].name + ".weight", layers[i].elements, layers[i].rows, always(backward)});
  }
  profile.codecs = example_codecs();
  profile.pack_s_per_byte = profile.copy_s_per_byte = 2 / kMemory;
  profile.update_s_per_byte = 5 / kMemory;
  const double update = profile.update_s_per_byte * static_cast<double>(profile.gradient_bytes());
  profile.forward_s = always(forward);
  profile.backward_s = always(backward);
  profile.optimizer_s = always(update);
  profile.step_s = always(forward + backward + update);
  profile.residuals = {1};
  profile.noise = {.batch = static_cast<double>(batch), .gradient_square = 1, .trace = 2000, .loss = 1, .steps = 100};
  profile.samples = 60000;
  return profile;
}

Profile example_profile(std::string_view name) {
  for (const auto& example : kExamples) {
    if (example.name == name) return example_profile(name, example.layers(example.batch), example.batch);
  }
  throw ConfigError(fmt::format("no example profile '{}'; there are {}", name, listed(kNames)));
}

std::span<const std::string_view> example_profiles() { return kNames; }

}  // namespace trireme::cluster
