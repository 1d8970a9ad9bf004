// `trireme explain`: the rounds of an algorithm, the chart of a pipeline, or the steps of an operator, as text or as a
// page for the browser.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/command.h"
#include "trireme/cli/explain/explain_auto.h"
#include "trireme/cli/explain/explain_operator.h"
#include "trireme/cli/explain/explain_pipeline.h"
#include "trireme/cli/output_file.h"
#include "trireme/cli/terminal.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/formulas.h"
#include "trireme/collective/draw/drawing.h"
#include "trireme/mesh/schedule.h"

namespace trireme::cli {
namespace {

constexpr std::size_t kDrawnElementBytes = 4;
constexpr int kMostDrawnRanks = 1024;

struct ExplainOptions {
  std::string algorithm;
  std::string collective;
  std::string ranks = "4";
  std::string count;
  std::string root = "0";
  std::string html;
  bool full = false;
  // Of auto only.
  std::string bytes = "1M";
  std::string transport = "shm";
  bool deterministic = false;
  bool json = false;  // of auto and pipelines
  PipelineQuestion pipeline;
  OperatorQuestion op;
};

constexpr const char* kDrawing[] = {"--count", "--html", "--full"};
constexpr const char* kAuto[] = {"--bytes", "--transport", "--deterministic"};
constexpr const char* kCollective[] = {"--ranks", "--collective", "--count", "--root"};
constexpr const char* kJson[] = {"--json"};

// A flag that would have no effect is an error.
template <std::size_t N>
void refuse(const CLI::App& command, const char* const (&flags)[N], std::string_view with) {
  for (const char* flag : flags) {
    if (command.count(flag) > 0) throw ConfigError(fmt::format("{}: has no meaning with {}", flag, with));
  }
}

// With no collective named: all-reduce if it has the algorithm, else the first that has.
const Algorithm& choose(const ExplainOptions& options) {
  if (!options.collective.empty()) return find_algorithm(parse_collective(options.collective), options.algorithm);
  const Algorithm* found = nullptr;
  std::string wanted = options.algorithm;
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == wanted && (!found || algorithm.what == Collective::all_reduce)) found = &algorithm;
  }
  if (found) return *found;
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) {
    if (std::find(names.begin(), names.end(), algorithm.name) == names.end()) names.push_back(algorithm.name);
  }
  names.push_back("auto");
  for (const std::string_view each : explained_operators()) {
    if (std::find(names.begin(), names.end(), each) == names.end()) names.push_back(each);
  }
  std::vector<std::string> pipelines;
  for (const pipelines::PipelineKind& kind : pipelines::kinds()) {
    pipelines.push_back(fmt::format("{}{}", kPipelinePrefix, kind.name));
  }
  names.insert(names.end(), pipelines.begin(), pipelines.end());
  throw ConfigError(fmt::format("no algorithm '{}'; {}there are: {}", clipped(options.algorithm),
                                did_you_mean(options.algorithm, names), fmt::join(names, ", ")));
}

Call shape_of(const Algorithm& algorithm, const ExplainOptions& options) {
  Call call;
  call.what = algorithm.what;
  call.ranks = static_cast<int>(parse_integer(options.ranks, "--ranks", 1, kMostDrawnRanks));
  call.root = static_cast<int>(parse_integer(options.root, "--root", 0, call.ranks - 1));
  if (options.root != "0" && !has_root(algorithm.what)) {
    throw ConfigError(fmt::format("--root: {} has no root", name(algorithm.what)));
  }
  call.count = has_blocks(algorithm.what) ? 1 : static_cast<std::size_t>(call.ranks);
  if (algorithm.what == Collective::barrier) {
    if (!options.count.empty()) throw ConfigError("--count: a barrier moves no data");
    call.count = 0;
  }
  if (!options.count.empty())
    call.count = static_cast<std::size_t>(parse_integer(options.count, "--count", 0, 1 << 20));
  call.stride = call.count;
  return call;
}

Caption caption_of(const Algorithm& algorithm, const Call& call) {
  Count count = count_schedule(algorithm, call, kDrawnElementBytes);
  Caption caption;
  caption.title =
      fmt::format("{} by {} on {} rank{}", name(call.what), algorithm.name, call.ranks, call.ranks == 1 ? "" : "s");
  caption.summary = algorithm.summary;
  auto& facts = caption.facts;
  if (call.count > 0) {
    facts.emplace_back("data",
                       fmt::format("{} element{} of {} bytes per rank{}", call.count, call.count == 1 ? "" : "s",
                                   kDrawnElementBytes, has_blocks(call.what) ? " and block" : ""));
  }
  int silent = algorithm.plan(call).rounds - count.rounds;
  facts.emplace_back(
      "rounds", fmt::format("{}{}", count.rounds, silent > 0 ? fmt::format(", and {} without messages", silent) : ""));
  facts.emplace_back("wires", fmt::format("{} peer{} at most for one rank", count.wires, count.wires == 1 ? "" : "s"));
  if (count.total_bytes > 0) {
    facts.emplace_back("sent",
                       fmt::format("{} bytes at most by one rank, {} in all", count.max_sent, count.total_bytes));
  }
  if (count.max_reduced > 0)
    facts.emplace_back("reduced", fmt::format("{} bytes at most by one rank", count.max_reduced));
  if (algorithm.shared) {
    facts.emplace_back("memory", fmt::format("{} bytes loaded and {} stored in all", count.loaded, count.stored));
  }
  auto form = closed_form(call.what, algorithm.name, {call.ranks, 0, 0, 0, 0});
  if (form) {
    facts.emplace_back("formulas", fmt::format("{} rounds, {} per round, {} in all", form->rounds.text,
                                               form->bytes_per_round.text, form->total_bytes.text));
    facts.emplace_back("time", std::string(form->time_many.text));
    if (form->time_one.text != form->time_many.text) {
      facts.emplace_back("on one wire", std::string(form->time_one.text));
    }
    facts.emplace_back("", "P ranks, n bytes; α per message, β per byte sent, γ per byte reduced");
  }
  return caption;
}

void write_page(const std::string& path, const std::string& page, const char* what_to_do) {
  write_output(path, "--html", page);
  fmt::print("wrote {} ({}); open it in a browser, {}\n", path, format_size(page.size()), what_to_do);
}

void ask_auto(const CLI::App& command, const ExplainOptions& options) {
  refuse(command, kDrawing, "auto, which picks an algorithm");
  AutoQuestion question;
  if (!options.collective.empty()) question.what = parse_collective(options.collective);
  question.ranks = static_cast<int>(parse_integer(options.ranks, "--ranks", 1, kMostDrawnRanks));
  question.root = static_cast<int>(parse_integer(options.root, "--root", 0, question.ranks - 1));
  if (command.count("--root") > 0 && !has_root(question.what)) {
    throw ConfigError(fmt::format("--root: {} has no root", name(question.what)));
  }
  if (command.count("--bytes") > 0 && question.what == Collective::barrier) {
    throw ConfigError("--bytes: a barrier moves no data");
  }
  question.bytes = parse_size(options.bytes, "--bytes");
  question.transport = options.transport;
  question.deterministic = options.deterministic;
  question.json = options.json;
  explain_auto(question);
}

void ask_pipeline(const CLI::App& command, const ExplainOptions& options) {
  refuse(command, kCollective, "a pipeline; it belongs to collectives");
  refuse(command, kAuto, "a pipeline; it belongs to auto");
  auto name = std::string_view(options.algorithm).substr(kPipelinePrefix.size());
  bool html = !options.html.empty();
  std::string page = explain_pipeline(name, command, options.pipeline, html, options.full, options.json);
  if (html) write_page(options.html, page, "point at a micro-batch to follow it");
}

void ask_operator(const CLI::App& command, const ExplainOptions& options) {
  refuse(command, kCollective, "an operator; it belongs to collectives");
  refuse(command, kAuto, "an operator; it belongs to auto");
  refuse(command, kPipelineFlags, "an operator; it belongs to pipeline:NAME");
  refuse(command, kJson, "an operator; it belongs to auto and to pipelines");
  if (options.full) throw ConfigError("--full: has no meaning with an operator");
  OperatorQuestion question = options.op;
  question.name = options.algorithm;
  const ops::OpDrawing drawing = explain_operator(command, question);
  if (options.html.empty()) {
    fmt::print("{}", ops::drawing_text(drawing));
  } else {
    write_page(options.html, ops::drawing_page(drawing), "the steps from top to bottom");
  }
}

void explain(const CLI::App& command, const ExplainOptions& options) {
  if (command.count("--html") > 0 && options.algorithm != "auto") check_output(options.html, "--html");
  if (options.algorithm.starts_with(kPipelinePrefix)) {
    refuse(command, kOperatorFlags, "a pipeline; it belongs to operators");
    return ask_pipeline(command, options);
  }
  if (asks_operator(command, options.algorithm)) return ask_operator(command, options);
  refuse(command, kOperatorFlags, "what is no operator; it belongs to operators");
  refuse(command, kPipelineFlags, "an algorithm of a collective; it belongs to pipeline:NAME");
  if (options.algorithm == "auto") return ask_auto(command, options);
  refuse(command, kAuto, "an algorithm; it belongs to auto");
  refuse(command, kJson, "an algorithm; it belongs to auto and to pipelines");
  const Algorithm& algorithm = choose(options);
  Call call = shape_of(algorithm, options);
  Trace trace(algorithm, call);
  Caption caption = caption_of(algorithm, call);
  if (options.html.empty()) {
    Terminal terminal = standard_output();
    fmt::print("{}", draw_text(trace, caption, {terminal.color, options.full, terminal.width}));
  } else {
    write_page(options.html, draw_page(trace, algorithm, caption), "step with the arrow keys");
  }
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand(
      "explain", "Show the rounds of an algorithm, the chart of a pipeline, or the steps of an operator");
  command
      ->add_option(
          "algorithm", options->algorithm,
          "Its name, as `trireme check` lists them; auto: which would be picked; pipeline:1f1b; or an operator: "
          "conv, winograd, im2col, fft, matmul, lstm, attention")
      ->required();
  command->add_option("-n,--ranks,--workers,--nproc-per-node", options->ranks, "Ranks (default 4)");
  command->add_option("--collective", options->collective, "Default: all-reduce, or the first that has the algorithm");
  command->add_option("--count", options->count, "Elements per rank, or per block (default: one per chunk)");
  command->add_option("--root", options->root, "Root of broadcast, scatter, gather and reduce (default 0)");
  command->add_option("--html", options->html, "Write a page for the browser to this file instead of text");
  command->add_flag("--full", options->full, "Text: leave out nothing, however many ranks and rounds");
  command->add_option("--bytes", options->bytes, "auto: bytes of the vector, or of one rank's block (default 1M)");
  command->add_option("--transport", options->transport, "auto: over which (default shm)")
      ->check(CLI::IsMember({"inproc", "shm", "tcp"}));
  command->add_flag("--deterministic", options->deterministic, "auto: only sums in canonical order");
  command->add_flag("--json", options->json, "auto and pipelines: one JSON object");
  add_pipeline_flags(*command, options->pipeline);
  add_operator_flags(*command, options->op);
  command->callback([options, command] { explain(*command, *options); });
}

}  // namespace trireme::cli
