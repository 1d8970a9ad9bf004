#include "trireme/cli/bench/zoo_convs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/text.h"

namespace trireme::bench {
namespace {

// Square images and kernels.
struct Line {
  int layers;
  int64_t channels, size, filters, kernel, stride = 1;
  int64_t padding = -1;  // −1: half the kernel
};

constexpr std::array kResnet18{Line{1, 3, 32, 64, 3},       Line{4, 64, 32, 64, 3},   Line{1, 64, 32, 128, 3, 2},
                               Line{1, 64, 32, 128, 1, 2},  Line{3, 128, 16, 128, 3}, Line{1, 128, 16, 256, 3, 2},
                               Line{1, 128, 16, 256, 1, 2}, Line{3, 256, 8, 256, 3},  Line{1, 256, 8, 512, 3, 2},
                               Line{1, 256, 8, 512, 1, 2},  Line{3, 512, 4, 512, 3}};
constexpr std::array kResnet32{Line{1, 3, 32, 16, 3},  Line{10, 16, 32, 16, 3},   Line{1, 16, 32, 32, 3, 2},
                               Line{9, 32, 16, 32, 3}, Line{1, 32, 16, 64, 3, 2}, Line{9, 64, 8, 64, 3}};
constexpr std::array kVgg11{Line{1, 3, 32, 64, 3},   Line{1, 64, 16, 128, 3}, Line{1, 128, 8, 256, 3},
                            Line{1, 256, 8, 256, 3}, Line{1, 256, 4, 512, 3}, Line{1, 512, 4, 512, 3},
                            Line{2, 512, 2, 512, 3}};
constexpr std::array kLenet{Line{1, 1, 28, 6, 5}, Line{1, 6, 14, 16, 5, 1, 0}};

struct Model {
  std::string_view name;
  std::span<const Line> lines;
};
constexpr std::array kModels{Model{"resnet18", kResnet18}, Model{"resnet32", kResnet32}, Model{"vgg11", kVgg11},
                             Model{"lenet", kLenet}};

}  // namespace

std::vector<std::string_view> models_with_convs() {
  std::vector<std::string_view> names;
  for (const Model& model : kModels) names.push_back(model.name);
  return names;
}

std::vector<ZooConv> convs_of(std::string_view name, int64_t batch) {
  for (const Model& model : kModels) {
    if (model.name != name) continue;
    std::vector<ZooConv> convs;
    for (const Line& line : model.lines) {
      const int64_t padding = line.padding >= 0 ? line.padding : line.kernel / 2;
      convs.push_back({line.layers,
                       {.batch = batch,
                        .in_channels = line.channels,
                        .height = line.size,
                        .width = line.size,
                        .out_channels = line.filters,
                        .kernel = {line.kernel, line.kernel},
                        .stride = {line.stride, line.stride},
                        .padding = {padding, padding}}});
    }
    return convs;
  }
  throw ConfigError(fmt::format("--model: no convolutions of '{}' are known; there are {}", clipped(std::string(name)),
                                fmt::join(models_with_convs(), ", ")));
}

}  // namespace trireme::bench
