// `trireme bench ops`: the implementations of operators beside each other, in turns, on the shapes of a model's layers.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/bench/onednn_conv.h"
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
  std::vector<std::string> shapes, implementations, peers;
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
  std::string implementation, peer;
  int64_t workspace = 0;  // bytes
  std::function<void()> run;
  std::vector<double> seconds;
};

// One call of each a round, after one that is not counted: it touches the memory.
std::vector<OpRow> measure(const ops::ConvShape& shape, ops::Pass pass, const Implementations& chosen, bool onednn,
                           int rounds) {
  const Tensors tensors(shape);
  ops::AlignedFloats memory;
  std::vector<OpRow> rows;
  for (const ops::ConvAlgorithm* it : chosen) {
    if (!it->takes(shape, pass)) continue;
    const int64_t size = it->cost(shape, pass).workspace;
    memory.grow(size / 4 + 1);
    const auto run = [=, &tensors, &memory] {
      it->run(shape, pass, tensors.all, {reinterpret_cast<std::byte*>(memory.data()), static_cast<std::size_t>(size)});
    };
    rows.push_back({std::string(it->name()), "trireme", size, run, {}});
  }
  for (const std::string_view algorithm : bench::kOneDnnAlgorithms) {
    if (!onednn) break;
    const std::shared_ptr<bench::OneDnnConv> it = bench::make_onednn_conv(shape, pass, algorithm);
    if (it != nullptr) rows.push_back({std::string(algorithm), "onednn", it->workspace(), [it] { it->run(); }, {}});
  }
  for (int round = -1; round < rounds; ++round) {
    for (OpRow& row : rows) {
      const double begin = now_seconds();
      row.run();
      if (round >= 0) row.seconds.push_back(now_seconds() - begin);
    }
  }
  for (OpRow& row : rows) row.run = nullptr;  // it points into this function
  return rows;
}

void print_row(const OpRow& row, const ops::ConvShape& shape, ops::Pass pass, int layers, double peak, bool json) {
  const double p50 = bench::median(row.seconds), gflops = shape.flops() / p50 * 1e-9;
  if (json) {
    const nlohmann::ordered_json line{{"op", "conv"},
                                      {"pass", ops::name(pass)},
                                      {"shape", ops::text_of(shape)},
                                      {"layers", layers},
                                      {"implementation", row.implementation},
                                      {"us_p50", p50 * 1e6},
                                      {"gflops", gflops},
                                      {"of_peak", gflops / peak},
                                      {"bytes_workspace", row.workspace},
                                      {"threads", ops::threads()},
                                      {"instructions", ops::instruction_set()},
                                      {"peer", row.peer}};
    fmt::print("{}\n", line.dump());
  } else {
    fmt::print("{:<38} {:<8} {:<27} {:>10.1f} {:>9.1f} {:>7.2f} {:>10}\n", ops::text_of(shape), ops::name(pass),
               (row.peer == "trireme" ? "" : row.peer + " ") + row.implementation, p50 * 1e6, gflops, gflops / peak,
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
  for (const std::string& peer : flags.peers) {
    if (peer != "onednn") throw ConfigError(fmt::format("--peers: no '{}'; there is onednn", clipped(peer)));
  }
  const auto shapes = shapes_of(flags);
  const double peak = ops::measure_peak() * ops::threads() * 1e-9;
  if (!flags.json) {
    fmt::print(
        "convolution on {} thread{} of {}, peak {:.0f} GFLOP/s; median of {} rounds in turns; speeds count the "
        "definition's operations\n{:<38} {:<8} {:<27} {:>10} {:>9} {:>7} {:>10}\n",
        ops::threads(), ops::threads() == 1 ? "" : "s", ops::instruction_set(), peak, rounds, "shape", "pass",
        "implements", "us", "GFLOP/s", "of peak", "workspace");
  }
  double flops = 0;
  std::map<std::string, double> best;  // of all layers, each by its peer's fastest; seconds
  for (const auto& [layers, shape] : shapes) {
    for (const ops::Pass pass : ops::kPasses) {
      std::map<std::string, double> least;
      for (const OpRow& row : measure(shape, pass, chosen, !flags.peers.empty(), rounds)) {
        print_row(row, shape, pass, layers, peak, flags.json);
        const double p50 = bench::median(row.seconds);
        double& kept = least.try_emplace(row.peer, p50).first->second;
        kept = std::min(kept, p50);
      }
      for (const auto& [peer, seconds] : least) best[peer] += layers * seconds;
      flops += layers * shape.flops();
    }
  }
  for (const auto& [peer, seconds] : best) {
    if (flags.json) break;
    fmt::print("all layers and passes, each by {}'s fastest: {:.1f} ms, {:.0f} GFLOP/s, {:.2f} of the peak\n", peer,
               seconds * 1e3, flops / seconds * 1e-9, flops / seconds * 1e-9 / peak);
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
  command->add_option("--peers", flags->peers, "Also measure onednn, in its own layouts")->delimiter(',');
  command->add_option("--threads", flags->threads, "Default: as many as OpenMP takes");
  command->add_option("--rounds", flags->rounds, "How often each has its turn")->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags, command] { run_ops(*command, *flags); });
}

}  // namespace trireme::cli
