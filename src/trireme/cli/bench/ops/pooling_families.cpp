// The largest or the mean of windows: ops/passes.
#include <fmt/format.h>

#include <memory>

#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/passes/pool.h"

namespace trireme::bench {
namespace {

ops::PoolShape windows_of(const PoolingShape& it) {
  return {it.batch, it.channels, ops::PoolSide::windows(it.height, it.kernel[0], it.stride[0], it.padding[0]),
          ops::PoolSide::windows(it.width, it.kernel[1], it.stride[1], it.padding[1])};
}

struct PoolingData {
  explicit PoolingData(const PoolingShape& of) : relu(of.relu), shape(windows_of(of)) {}
  bool relu;
  ops::PoolShape shape;
  ops::AlignedFloats x = some_numbers(shape.input_size()), y{shape.output_size()};
  ops::AlignedFloats d_y = some_numbers(shape.output_size()), d_x{shape.input_size()};
  std::vector<uint8_t> chosen = std::vector<uint8_t>(static_cast<std::size_t>(shape.output_size()));
};

std::vector<Contender> max_pool_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<PoolingData>(std::get<PoolingShape>(of));
  const std::function<void()> forward = [it] {
    ops::max_pool(it->shape, it->x.data(), it->relu, it->y.data(), it->chosen.data());
  };
  if (pass == ops::Pass::forward) return {{"fused", it->shape.output_size(), forward}};
  forward();
  return {{"fused", 0, [it] { ops::max_pool_backward(it->shape, it->d_y.data(), it->chosen.data(), it->d_x.data()); }}};
}

std::vector<Contender> mean_pool_contenders(const OpShape& of, ops::Pass pass) {
  const auto it = std::make_shared<PoolingData>(std::get<PoolingShape>(of));
  if (pass == ops::Pass::forward) {
    return {{"fused", 0, [it] { ops::mean_pool(it->shape, it->x.data(), 0, it->y.data()); }}};
  }
  return {{"fused", 0, [it] { ops::mean_pool_backward(it->shape, it->d_y.data(), 0, it->d_x.data()); }}};
}

OpShape parse_pooling(const OpFamily& family, std::string_view text, bool takes_relu) {
  const OpText parsed = parse_op_text(family, text, {4, 2});
  const auto &image = parsed.sizes[0], &kernel = parsed.sizes[1];
  PoolingShape shape{.batch = image[0],
                     .channels = image[1],
                     .height = image[2],
                     .width = image[3],
                     .kernel = {kernel[0], kernel[1]},
                     .stride = {kernel[0], kernel[1]}};
  for (const OpSetting& setting : parsed.settings) {
    if (setting.name == "stride") {
      shape.stride = sides_of(family, setting, 1);
    } else if (setting.name == "padding") {
      shape.padding = sides_of(family, setting, 0);
    } else if (setting.name == "relu" && setting.value.empty() && takes_relu) {
      shape.relu = true;
    } else {
      refuse_setting(family, setting);
    }
  }
  windows_of(shape);  // throws where there can be none
  return shape;
}

std::string pooling_text(const OpShape& of) {
  const auto& it = std::get<PoolingShape>(of);
  std::string text =
      fmt::format("{}x{}x{}x{},{}x{}", it.batch, it.channels, it.height, it.width, it.kernel[0], it.kernel[1]);
  const auto add = [&](std::string_view name, const std::array<int64_t, 2>& sides) {
    text += sides[0] == sides[1] ? fmt::format(",{}={}", name, sides[0])
                                 : fmt::format(",{}={}x{}", name, sides[0], sides[1]);
  };
  if (it.stride != it.kernel) add("stride", it.stride);
  if (it.padding != std::array<int64_t, 2>{0, 0}) add("padding", it.padding);
  return text + (it.relu ? ",relu" : "");
}

OpFamily pooling_family(std::string_view name) {
  return {.name = name,
          .form = "NxCxHxW,HxW[,stride=][,padding=]",
          .example = "16x512x4x4,4x4",
          .memory_bound = true,
          .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "backward"}},
          .implementations = {"fused"},
          .parse = [](const OpFamily& family, std::string_view text) { return parse_pooling(family, text, false); },
          .text = pooling_text,
          .work = [](const OpShape& of, ops::Pass pass) -> OpWork {
            const auto& it = std::get<PoolingShape>(of);
            const ops::PoolShape shape = windows_of(it);
            const auto in = static_cast<double>(shape.input_size()), out = static_cast<double>(shape.output_size());
            const double window = static_cast<double>(it.kernel[0] * it.kernel[1]);
            return {pass == ops::Pass::forward ? out * window : in, 4 * (in + out)};
          },
          .contenders = mean_pool_contenders};
}

}  // namespace

OpFamily mean_pool_family() { return pooling_family("mean-pool"); }

OpFamily max_pool_family() {
  OpFamily family = pooling_family("max-pool");
  family.form = "NxCxHxW,HxW[,stride=][,padding=][,relu]";
  family.example = "32x64x32x32,2x2,relu";
  family.parse = [](const OpFamily& of, std::string_view text) { return parse_pooling(of, text, true); };
  family.contenders = max_pool_contenders;
  return family;
}

}  // namespace trireme::bench
