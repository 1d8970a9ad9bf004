// Stacks of LSTM and GRU layers: the schedules of ops/recurrent.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "trireme/cli/bench/ops/op_text.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/recurrent/recurrent.h"

namespace trireme::bench {
namespace {

constexpr int64_t kWavesOfBench = 8;

// The two ways to schedule, on all threads: by batch, and by layers as a wavefront.
struct RecurrentWay {
  std::string_view name;
  ops::RecurrentSchedule (*make)(const ops::RecurrentShape& shape);
};
constexpr std::array kRecurrentWays{
    RecurrentWay{"by-batch",
                 [](const ops::RecurrentShape& it) {
                   return ops::make_recurrent_schedule(it.layers, it.steps, it.batch, ops::threads(), it.steps);
                 }},
    RecurrentWay{"wavefront", [](const ops::RecurrentShape& it) {
                   const int64_t chunk = std::max<int64_t>(1, it.steps / kWavesOfBench);
                   return ops::make_recurrent_schedule(it.layers, it.steps, it.batch, 1, chunk);
                 }}};

struct RecurrentData {
  explicit RecurrentData(const ops::RecurrentShape& of) : shape(of) {
    const int64_t all = of.gates() * of.hidden;
    for (int64_t layer = 0; layer < of.layers; ++layer) {
      const auto own = [&](int64_t size) {
        memory.push_back(some_numbers(size));
        float* const at = memory.back().data();
        for (int64_t i = 0; i < size; ++i) at[i] *= 0.1f;
        return at;
      };
      weights.push_back({own(all * of.features(layer)), own(all * of.hidden), own(all), own(all)});
      gradients.push_back({own(all * of.features(layer)), own(all * of.hidden), own(all), own(all)});
    }
  }
  void forward(const ops::RecurrentSchedule& schedule) {
    ops::recurrent_forward(shape, weights, {.input = input.data(), .output = output.data(), .saved = saved.data()},
                           schedule);
  }
  void backward(const ops::RecurrentSchedule& schedule) {
    ops::recurrent_backward(shape, weights, gradients,
                            {.input = input.data(),
                             .output = output.data(),
                             .saved = saved.data(),
                             .d_output = d_output.data(),
                             .d_input = d_input.data(),
                             .workspace = workspace.data()},
                            schedule);
  }

  ops::RecurrentShape shape;
  std::vector<ops::AlignedFloats> memory;
  std::vector<ops::RecurrentWeights> weights;
  std::vector<ops::RecurrentGradients> gradients;
  ops::AlignedFloats input = some_numbers(shape.input_size()), output{shape.output_size()};
  ops::AlignedFloats saved{shape.saved_size()}, workspace{shape.workspace_size()};
  ops::AlignedFloats d_output = some_numbers(shape.output_size()), d_input{shape.input_size()};
};

std::vector<Contender> recurrent_contenders(const OpShape& of, ops::Pass pass) {
  const auto& shape = std::get<ops::RecurrentShape>(of);
  const auto data = std::make_shared<RecurrentData>(shape);
  const bool forward = pass == ops::Pass::forward;
  if (!forward) data->forward(kRecurrentWays[0].make(shape));
  std::vector<Contender> all;
  for (const RecurrentWay& way : kRecurrentWays) {
    const ops::RecurrentSchedule schedule = way.make(shape);
    if (&way != &kRecurrentWays[0] && !schedule.wavefront) continue;  // one layer or one step: the same as by batch
    all.push_back({std::string(way.name), 4 * (forward ? shape.saved_size() : shape.workspace_size()),
                   [=] { forward ? data->forward(schedule) : data->backward(schedule); }});
  }
  return all;
}

ops::RecurrentShape recurrent_shape(const OpFamily& family, std::string_view text, ops::RecurrentKind kind) {
  const OpText parsed = parse_op_text(family, text, {3, 1});
  ops::RecurrentShape shape{.kind = kind,
                            .input = parsed.sizes[0][2],
                            .hidden = parsed.sizes[1][0],
                            .steps = parsed.sizes[0][1],
                            .batch = parsed.sizes[0][0]};
  for (const OpSetting& setting : parsed.settings) {
    if (setting.name != "layers") refuse_setting(family, setting);
    shape.layers = number_of(family, setting, 1, 1024);
  }
  return shape;
}

OpFamily recurrent_family(std::string_view name, OpShape (*parse)(const OpFamily& family, std::string_view text)) {
  OpFamily made{.name = name,
                .form = "BATCHxSTEPSxINPUTS,HIDDEN[,layers=]",
                .example = "16x64x256,256,layers=2",
                .passes = {{ops::Pass::forward, "forward"}, {ops::Pass::data, "backward"}},
                .implementations = {},
                .parse = parse,
                .text =
                    [](const OpShape& of) {
                      const auto& it = std::get<ops::RecurrentShape>(of);
                      return fmt::format("{}x{}x{},{}{}", it.batch, it.steps, it.input, it.hidden,
                                         it.layers == 1 ? "" : fmt::format(",layers={}", it.layers));
                    },
                .work = [](const OpShape& of, ops::Pass pass) -> OpWork {
                  const auto& it = std::get<ops::RecurrentShape>(of);
                  double weights = 0;
                  for (int64_t layer = 0; layer < it.layers; ++layer) {
                    weights += static_cast<double>(it.gates() * it.hidden * (it.features(layer) + it.hidden));
                  }
                  const double tensors = static_cast<double>(it.input_size() + it.output_size());
                  return {(pass == ops::Pass::forward ? 1 : 2) * it.forward_flops(),
                          4 * (pass == ops::Pass::forward ? 1 : 2) * (weights + tensors)};
                },
                .contenders = recurrent_contenders};
  for (const RecurrentWay& way : kRecurrentWays) made.implementations.emplace_back(way.name);
  return made;
}

}  // namespace

OpFamily lstm_family() {
  return recurrent_family("lstm", [](const OpFamily& family, std::string_view text) -> OpShape {
    return recurrent_shape(family, text, ops::RecurrentKind::lstm);
  });
}

OpFamily gru_family() {
  return recurrent_family("gru", [](const OpFamily& family, std::string_view text) -> OpShape {
    return recurrent_shape(family, text, ops::RecurrentKind::gru);
  });
}

}  // namespace trireme::bench
