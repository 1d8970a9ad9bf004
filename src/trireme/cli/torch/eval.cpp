// trireme eval: how good what was trained is, on its own test data or on other data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/trained.h"
#include "trireme/train/learner/evaluate.h"

namespace trireme::cli {
namespace {

struct EvalOptions {
  TrainedOptions trained;
  std::string data, data_root;
  bool json = false;
};

// Another set, in the numbers of the one the model knows: its normalization, its numbering of symbols.
class AsTrained final : public data::Dataset {
 public:
  AsTrained(const data::Splits& splits, const data::Look& look) : set_(splits.test), shape_(set_->shape()) {
    if (shape_.text) {
      shape_.classes = look.shape.classes;
      for (const auto& symbol : splits.labels) symbols_.push_back(data::to_symbols(symbol, look, splits.name)[0]);
    } else if (!splits.mean.empty() && splits.mean.size() == look.mean.size()) {
      const auto channels = static_cast<std::int64_t>(look.mean.size());
      const std::vector<std::int64_t> view = shape_.input.size() == 3 ? std::vector<std::int64_t>{1, channels, 1, 1}
                                                                      : std::vector<std::int64_t>{1, channels};
      auto mean = torch::tensor(look.mean), deviation = torch::tensor(look.deviation);
      scale_ = (torch::tensor(splits.deviation) / deviation).view(view);
      shift_ = ((torch::tensor(splits.mean) - mean) / deviation).view(view);
    }
  }

  std::int64_t size() const override { return set_->size(); }
  const data::Shape& shape() const override { return shape_; }
  data::Batch get(std::span<const std::int64_t> indices) const override {
    auto batch = set_->get(indices);
    if (scale_.defined()) batch.input = batch.input * scale_ + shift_;
    if (!symbols_.empty()) {
      auto table = torch::tensor(symbols_, torch::kInt64);
      batch.input = table.index_select(0, batch.input.flatten()).view_as(batch.input);
      batch.target = table.index_select(0, batch.target.flatten()).view_as(batch.target);
    }
    return batch;
  }

 private:
  const std::shared_ptr<const data::Dataset> set_;
  data::Shape shape_;
  torch::Tensor scale_, shift_;
  std::vector<std::int64_t> symbols_;
};

std::string describe(const data::Shape& shape) {
  if (shape.text) return fmt::format("texts of {} symbols", shape.classes);
  const auto input = fmt::format("{}", fmt::join(shape.input, "x"));
  if (shape.values > 0) return fmt::format("samples of {} with {} numbers to predict", input, shape.values);
  return fmt::format("samples of {} in {} classes", input, shape.classes);
}

// What is tested on; throws unless the model can take it.
std::shared_ptr<const data::Dataset> open_test(const EvalOptions& options, Trained& trained, std::string& name) {
  auto config = trained.config;
  config.augment = false;
  const bool other = !options.data.empty() && options.data != config.data;
  if (!options.data.empty()) config.data = options.data;
  if (!options.data_root.empty()) config.data_root = options.data_root;
  auto splits = train::open_data(config);
  name = splits.name;
  const auto &here = splits.test->shape(), &there = trained.look.shape;
  const bool renamed = other && here.text && !splits.labels.empty() && !trained.look.labels.empty();
  if (here.text != there.text || here.input != there.input || (here.classes != there.classes && !renamed) ||
      here.values != there.values) {
    throw ConfigError(fmt::format("{} has {}, but {} was trained on {}", splits.name, describe(here),
                                  trained.config.model, describe(there)));
  }
  if (!other) return splits.test;
  return std::make_shared<AsTrained>(splits, trained.look);
}

void print_table(const train::ByClass& by_class, const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 100;
  std::size_t width = 5;
  for (const auto& label : labels) width = std::max(width, label.size());
  fmt::print("\n  {:<{}}  {:>8}  {:>8}\n", "class", width, "samples", "accuracy");
  for (std::size_t k = 0; k < std::min(by_class.of.size(), kMost); ++k) {
    auto label = k < labels.size() ? labels[k] : fmt::format("{}", k);
    auto share = by_class.of[k] == 0 ? std::string("-")
                                     : fmt::format("{:.2f}%", 100.0 * static_cast<double>(by_class.correct[k]) /
                                                                  static_cast<double>(by_class.of[k]));
    fmt::print("  {:<{}}  {:>8}  {:>8}\n", label, width, by_class.of[k], share);
  }
  if (by_class.of.size() > kMost) fmt::print("  and {} more classes\n", by_class.of.size() - kMost);
}

void run(const EvalOptions& options) {
  train::check_threads(options.trained.threads);
  auto trained = load_trained(options.trained);
  std::string name;
  auto set = open_test(options, trained, name);
  train::ByClass by_class;
  const bool table = !options.json && trained.look.shape.classes > 0 && !trained.look.shape.text;
  const auto& metrics = trained.objective.metrics;
  auto result =
      train::evaluate(*trained.model, trained.objective, *set, trained.device, nullptr, table ? &by_class : nullptr);
  if (options.json) {
    nlohmann::ordered_json line{{"checkpoint", trained.file},
                                {"step", trained.step},
                                {"data", name},
                                {"samples", result.samples},
                                {"loss", result.loss}};
    for (std::size_t k = 0; k < metrics.size(); ++k) line[metrics[k].kind->key] = result.metrics[k];
    std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  std::vector<std::pair<std::string, std::string>> rows{
      {"checkpoint", fmt::format("{}, step {}", trained.file, trained.step)},
      {"data", fmt::format("{}, {} test samples", name, result.samples)}};
  for (std::size_t k = 0; k < metrics.size(); ++k) {
    if (metrics[k].asked) rows.emplace_back(metrics[k].kind->title, metrics[k].kind->text(result.metrics[k]));
    if (k == 0) rows.emplace_back("loss", fmt::format("{:.4f}", result.loss));
  }
  std::size_t width = 0;
  for (const auto& [what, value] : rows) width = std::max(width, what.size());
  for (const auto& [what, value] : rows) fmt::print("{:<{}}  {}\n", what, width, value);
  if (table) print_table(by_class, trained.look.labels);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<EvalOptions>();
  auto* command = app.add_subcommand("eval", "Test what was trained");
  command->footer("example: trireme eval --from runs/lenet-1");
  command->add_option("--from", options->trained.from, "folder of a run (its --out), or one checkpoint of it")
      ->type_name("DIR")
      ->required();
  command->add_option("--data", options->data, "other data of the same shape (default: the run's, its test part)")
      ->type_name("");
  command->add_option("--data-root", options->data_root, "where named data sets lie, as ROOT/NAME")->type_name("DIR");
  command->add_option("--metric", options->trained.metric, "NAME[,NAME…], as of trireme train (the run's)")
      ->type_name("");
  command->add_option("--checkpoint", options->trained.checkpoint, "best or last (best)")->type_name("");
  command->add_option("--device", options->trained.device, "cpu or cuda (as the run, where it is here)")->type_name("");
  command->add_option("--threads", options->trained.threads, "compute threads (0: every core)")->type_name("N");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace trireme::cli
