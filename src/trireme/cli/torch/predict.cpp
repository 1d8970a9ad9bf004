// trireme predict: what was trained judges images and arrays, or goes on with a text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/torch/command.h"
#include "trireme/cli/torch/trained.h"
#include "trireme/data/input.h"
#include "trireme/data/random.h"

namespace trireme::cli {
namespace {

struct PredictOptions {
  TrainedOptions trained;
  std::vector<std::string> files;
  std::int64_t top = 3, tokens = 200;
  bool top_given = false;
  std::uint64_t seed = 1;
  std::string temperature = "1";
  bool json = false;
};

std::string text_of(const nlohmann::ordered_json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string label_of(const data::Look& look, std::int64_t k) {
  const auto at = static_cast<std::size_t>(k);
  return at < look.labels.size() ? look.labels[at] : fmt::format("class {}", k);
}

// One line for one sample; `probabilities` is f32 [classes].
void print_judgement(const PredictOptions& options, const data::Look& look, const std::string& file, std::int64_t index,
                     const std::string& changed, const torch::Tensor& probabilities) {
  auto [values, places] = probabilities.topk(std::min(options.top, probabilities.size(0)));
  nlohmann::ordered_json line{{"file", file}}, top = nlohmann::ordered_json::array();
  std::string words;
  for (std::int64_t k = 0; k < values.size(0); ++k) {
    const auto place = places[k].item<std::int64_t>();
    const auto value = values[k].item<double>();
    top.push_back({{"class", place}, {"label", label_of(look, place)}, {"probability", value}});
    words += fmt::format("{}{} {:.1f}%", k == 0 ? "" : ", ", label_of(look, place), 100 * value);
  }
  if (!options.json) {
    std::cout << file << (index < 0 ? "" : fmt::format("[{}]", index)) << ": " << words << '\n';
    return;
  }
  if (index >= 0) line["index"] = index;
  line.update(top[0]);
  line["top"] = top;
  if (!changed.empty()) line["note"] = changed;
  std::cout << text_of(line) << '\n';
}

// The numbers of one sample; where targets were 0 or 1, how likely each is 1.
void print_values(const PredictOptions& options, bool likely, const std::string& file, std::int64_t index,
                  const std::string& changed, const torch::Tensor& outputs) {
  std::vector<double> values;
  for (std::int64_t k = 0; k < outputs.size(0); ++k) values.push_back(outputs[k].item<double>());
  if (!options.json) {
    std::cout << file << (index < 0 ? "" : fmt::format("[{}]", index)) << ": ";
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::cout << (k == 0 ? "" : ", ")
                << (likely ? fmt::format("{:.1f}%", 100 * values[k]) : fmt::format("{:g}", values[k]));
    }
    std::cout << '\n';
    return;
  }
  nlohmann::ordered_json line{{"file", file}};
  if (index >= 0) line["index"] = index;
  line[likely ? "probabilities" : "values"] = values;
  if (!changed.empty()) line["note"] = changed;
  std::cout << text_of(line) << '\n';
}

// Training refuses such values too.
void check_finite_input(const data::ReadSamples& read, const std::string& file) {
  const auto places = read.input.isfinite().logical_not().nonzero();
  if (places.size(0) == 0) return;
  std::vector<std::int64_t> within;
  for (std::int64_t axis = 1; axis < places.size(1); ++axis) within.push_back(places[0][axis].item<std::int64_t>());
  throw DataError(fmt::format("{}: a value that is not finite in sample {}, at [{}]", file,
                              places[0][0].item<std::int64_t>(), fmt::join(within, ", ")));
}

void judge(const PredictOptions& options, Trained& trained, const std::string& file) {
  constexpr std::int64_t kBatch = 256;
  auto read = data::read_samples(file, trained.look);
  check_finite_input(read, file);
  if (!read.changed.empty() && !options.json) fmt::print(stderr, "trireme: {}: {}\n", file, read.changed);
  for (std::int64_t at = 0; at < read.input.size(0); at += kBatch) {
    auto batch = read.input.narrow(0, at, std::min(kBatch, read.input.size(0) - at)).to(trained.device);
    auto outputs = trained.model->forward(batch).to(torch::kCPU);
    const auto index = [&](std::int64_t k) { return read.many ? at + k : -1; };
    if (trained.look.shape.values > 0) {
      const bool likely = trained.objective.targets == data::Targets::zero_one;
      if (likely) outputs = torch::sigmoid(outputs);
      outputs = outputs.reshape({outputs.size(0), -1});
      for (std::int64_t k = 0; k < outputs.size(0); ++k) {
        print_values(options, likely, file, index(k), read.changed, outputs[k]);
      }
      continue;
    }
    const auto probabilities = torch::softmax(outputs, -1);
    for (std::int64_t k = 0; k < probabilities.size(0); ++k) {
      print_judgement(options, trained.look, file, index(k), read.changed, probabilities[k]);
    }
  }
}

std::string read_prompt(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  auto bytes = data::read_file(file, std::uint64_t{1} << 30);
  return {bytes.begin(), bytes.end()};
}

// A symbol drawn by its probability; the likeliest at temperature 0.
std::int64_t draw(const torch::Tensor& scores, double temperature, std::uint64_t random) {
  if (temperature == 0) return scores.argmax().item<std::int64_t>();
  auto sums = torch::softmax(scores.to(torch::kFloat64) / temperature, -1).cumsum(-1).contiguous();
  const double point = std::ldexp(static_cast<double>(random >> 11), -53) * sums[-1].item<double>();
  const auto* begin = sums.data_ptr<double>();
  const auto* found = std::upper_bound(begin, begin + sums.numel(), point);
  return std::min<std::int64_t>(found - begin, sums.numel() - 1);
}

void go_on(const PredictOptions& options, Trained& trained, const std::string& file, double temperature) {
  const auto prompt = read_prompt(file);
  const auto where = file == "-" ? std::string("standard input") : file;
  auto symbols = data::to_symbols(prompt, trained.look, where);
  if (symbols.empty()) throw DataError(fmt::format("{}: empty; a text to go on with is needed", where));
  const auto begun = symbols.size(), window = static_cast<std::size_t>(trained.look.shape.input[0]);
  for (std::int64_t k = 0; k < options.tokens; ++k) {
    const auto seen = std::min(window, symbols.size());
    auto input = torch::tensor(
        std::vector<std::int64_t>(symbols.end() - static_cast<std::ptrdiff_t>(seen), symbols.end()), torch::kInt64);
    auto scores = trained.model->forward(input.unsqueeze(0).to(trained.device))[0][-1].to(torch::kCPU);
    symbols.push_back(draw(scores, temperature, data::random_at(options.seed, static_cast<std::uint64_t>(k))));
  }
  std::vector<std::int64_t> added(symbols.begin() + static_cast<std::ptrdiff_t>(begun), symbols.end());
  const auto continuation = data::to_text(added, trained.look);
  if (options.json) {
    std::cout << text_of({{"file", file}, {"prompt", prompt}, {"text", continuation}}) << '\n';
  } else {
    // Symbols without names are words, which need a blank before the next.
    const bool words = trained.look.labels.empty();
    std::cout << (words ? data::to_text(symbols, trained.look) : prompt + continuation) << '\n';
  }
}

void run(const PredictOptions& options) {
  const double temperature = parse_number(options.temperature, "--temperature");
  if (!(temperature >= 0)) throw ConfigError(fmt::format("--temperature: {} is below 0", options.temperature));
  train::check_threads(options.trained.threads);
  auto trained = load_trained(options.trained);
  if (options.top_given && trained.look.shape.classes == 0) {
    throw ConfigError(fmt::format("--top: {} predicts numbers, and no classes; leave it out", trained.file));
  }
  torch::NoGradGuard no_grad;
  int code = 0;
  for (const auto& file : options.files) {
    try {
      trained.look.shape.text ? go_on(options, trained, file, temperature) : judge(options, trained, file);
      std::cout.flush();
    } catch (const Error& error) {
      fmt::print(stderr, "trireme: {}\n", error.what());
      code = error.exit_code();
    }
  }
  if (code != 0) throw Exit{code};
}

}  // namespace

void add_predict(CLI::App& app) {
  auto options = std::make_shared<PredictOptions>();
  auto* command = app.add_subcommand("predict", "Let what was trained judge images or text");
  command->footer(
      "examples: trireme predict --from runs/lenet-1 shoe.png bag.jpg\n"
      "          echo 'Call me' | trireme predict --from runs/novel --tokens 500 -");
  command->add_option("--from", options->trained.from, "folder of a run (its --out), or one checkpoint of it")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("files", options->files,
                   "PNG, JPEG, NPY or IDX; for models of text: texts to go on with, - is standard input")
      ->type_name("FILE")
      ->required();
  command->add_option("--top", options->top, "classes to name, the likeliest first (3)")
      ->type_name("K")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--tokens", options->tokens, "text: symbols to add (200)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--temperature", options->temperature, "text: 0 takes the likeliest, above 1 gets wilder (1)")
      ->type_name("T");
  command->add_option("--seed", options->seed, "text: of what is drawn (1)")->type_name("N");
  command->add_option("--checkpoint", options->trained.checkpoint, "best or last (best)")->type_name("");
  command->add_option("--device", options->trained.device, "cpu or cuda (as the run, where it is here)")->type_name("");
  command->add_option("--threads", options->trained.threads, "compute threads (0: every core)")->type_name("N");
  command->add_flag("--json", options->json, "print one JSON object per line");
  command->callback([options, command] {
    options->top_given = command->count("--top") > 0;
    run(*options);
  });
}

}  // namespace trireme::cli
