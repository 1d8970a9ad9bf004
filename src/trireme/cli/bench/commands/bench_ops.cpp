// `trireme bench ops`: the implementations of operators beside each other, in turns, on the shapes of a model's layers.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/zoo_convs.h"
#include "trireme/cli/command.h"
#include "trireme/ops/aligned.h"
#include "trireme/ops/conv/choice.h"
#include "trireme/ops/conv/shape_text.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/peak.h"

namespace trireme::cli {
namespace {

struct OpsBenchFlags {
  std::string model, batch = "16", threads, rounds = "9";
  std::vector<std::string> shapes, implementations;
  bool json = false;
};

using Implementations = std::vector<const ops::ConvAlgorithm*>;

struct Tensors {
  explicit Tensors(const ops::ConvShape& shape) {
    const auto fill = [](ops::AlignedFloats& memory, int64_t count) {
      memory.grow(std::max<int64_t>(count, 1));
      for (int64_t i = 0; i < count; ++i) memory.data()[i] = static_cast<float>(i % 17) * 0.125f - 1.03f;
      return memory.data();
    };
    all = {.input = fill(input, shape.input_size()),
           .weight = fill(weight, shape.weight_size()),
           .output = fill(output, shape.output_size())};
  }
  ops::AlignedFloats input, weight, output;
  ops::ConvTensors all;
};

struct OpRow {
  const ops::ConvAlgorithm* implementation = nullptr;
  int64_t workspace = 0;  // bytes
  std::vector<double> seconds;
};

// One call of each a round, after one that is not counted: it touches the memory.
std::vector<OpRow> measure(const ops::ConvShape& shape, ops::Pass pass, const Implementations& chosen, int rounds) {
  const Tensors tensors(shape);
  ops::AlignedFloats memory;
  std::vector<OpRow> rows;
  for (const ops::ConvAlgorithm* it : chosen) {
    if (it->takes(shape, pass)) rows.push_back({it, it->cost(shape, pass).workspace, {}});
  }
  for (const OpRow& row : rows) memory.grow(row.workspace / 4 + 1);
  for (int round = -1; round < rounds; ++round) {
    for (OpRow& row : rows) {
      const double begin = now_seconds();
      row.implementation->run(shape, pass, tensors.all,
                              {reinterpret_cast<std::byte*>(memory.data()), static_cast<std::size_t>(row.workspace)});
      if (round >= 0) row.seconds.push_back(now_seconds() - begin);
    }
  }
  return rows;
}

void print_row(const OpRow& row, const ops::ConvShape& shape, ops::Pass pass, int layers, double peak, bool json) {
  const double p50 = bench::median(row.seconds), gflops = shape.flops() / p50 * 1e-9;
  if (json) {
    const nlohmann::ordered_json line{{"op", "conv"},
                                      {"pass", ops::name(pass)},
                                      {"shape", ops::text_of(shape)},
                                      {"layers", layers},
                                      {"implementation", row.implementation->name()},
                                      {"us_p50", p50 * 1e6},
                                      {"gflops", gflops},
                                      {"of_peak", gflops / peak},
                                      {"bytes_workspace", row.workspace},
                                      {"threads", ops::threads()},
                                      {"instructions", ops::instruction_set()},
                                      {"peer", "trireme"}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{:<38} {:<8} {:<10} {:>10.1f} {:>9.1f} {:>7.2f} {:>10}\n", ops::text_of(shape), ops::name(pass),
               row.implementation->name(), p50 * 1e6, gflops, gflops / peak,
               format_size(static_cast<std::uint64_t>(row.workspace)));
  }
  std::fflush(stdout);
}

// Those named, or all but the reference, which is no rival.
Implementations implementations_of(const OpsBenchFlags& flags) {
  const auto all = ops::conv_algorithms();
  if (flags.implementations.empty()) return {all.begin() + 1, all.end()};
  Implementations chosen;
  for (const std::string& name : flags.implementations) {
    const ops::ConvAlgorithm* it = ops::find_conv_algorithm(name);
    if (it == nullptr) {
      std::string names;
      for (const ops::ConvAlgorithm* other : all) names += (names.empty() ? "" : ", ") + std::string(other->name());
      throw ConfigError(fmt::format("--implementations: no '{}'; there are {}", clipped(name), names));
    }
    chosen.push_back(it);
  }
  return chosen;
}

std::vector<bench::ZooConv> shapes_of(const OpsBenchFlags& flags) {
  std::vector<bench::ZooConv> shapes;
  for (const std::string& text : flags.shapes) shapes.push_back({1, ops::parse_conv_shape(text)});
  if (!flags.model.empty() || shapes.empty()) {
    const auto batch = parse_integer(flags.batch, "--batch", 1, 1 << 16);
    const auto layers = bench::convs_of(flags.model.empty() ? "resnet18" : flags.model, batch);
    shapes.insert(shapes.end(), layers.begin(), layers.end());
  }
  return shapes;
}

void run_ops(const CLI::App& command, const OpsBenchFlags& flags) {
  if (command.count("--batch") > 0 && flags.model.empty() && !flags.shapes.empty()) {
    throw ConfigError("--batch: has no meaning with --shape, which has its own; it belongs to --model");
  }
  if (!flags.threads.empty()) ops::set_threads(static_cast<int>(parse_integer(flags.threads, "--threads", 1, 1024)));
  const auto rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  const Implementations chosen = implementations_of(flags);
  const auto shapes = shapes_of(flags);
  const double peak = ops::measure_peak() * ops::threads() * 1e-9;
  if (!flags.json) {
    fmt::print(
        "convolution on {} thread{} of {}, peak {:.0f} GFLOP/s; median of {} rounds in turns; speeds count the "
        "definition's operations\n{:<38} {:<8} {:<10} {:>10} {:>9} {:>7} {:>10}\n",
        ops::threads(), ops::threads() == 1 ? "" : "s", ops::instruction_set(), peak, rounds, "shape", "pass",
        "implements", "us", "GFLOP/s", "of peak", "workspace");
  }
  double best = 0, flops = 0;  // of all layers, each by the fastest
  for (const auto& [layers, shape] : shapes) {
    for (const ops::Pass pass : ops::kPasses) {
      const auto rows = measure(shape, pass, chosen, rounds);
      double least = 0;
      for (const OpRow& row : rows) {
        print_row(row, shape, pass, layers, peak, flags.json);
        const double p50 = bench::median(row.seconds);
        least = least == 0 ? p50 : std::min(least, p50);
      }
      best += layers * least;
      if (least > 0) flops += layers * shape.flops();
    }
  }
  if (!flags.json && best > 0) {
    fmt::print("all layers and passes, each by the fastest: {:.1f} ms, {:.0f} GFLOP/s, {:.2f} of the peak\n",
               best * 1e3, flops / best * 1e-9, flops / best * 1e-9 / peak);
  }
}

}  // namespace

void add_bench_ops(CLI::App& app) {
  auto* command = app.add_subcommand("bench-ops", "Measure operators' implementations: also `bench ops`");
  auto flags = std::make_shared<OpsBenchFlags>();
  command->add_option("--model", flags->model, "The convolutions of this model: resnet18, resnet32, vgg11, lenet");
  command->add_option("--batch", flags->batch, "Images of a batch, with --model")->capture_default_str();
  command->add_option("--shape", flags->shapes,
                      "A convolution: 16x64x32x32,128x3x3 with ,stride=2 ,padding=1 ,dilation= ,groups=");
  command
      ->add_option("--implementations", flags->implementations,
                   "Only these: direct, im2col, winograd2, winograd4, fft (default: all but direct)")
      ->delimiter(',');
  command->add_option("--threads", flags->threads, "Default: as many as OpenMP takes");
  command->add_option("--rounds", flags->rounds, "How often each has its turn")->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags, command] { run_ops(*command, *flags); });
}

}  // namespace trireme::cli
