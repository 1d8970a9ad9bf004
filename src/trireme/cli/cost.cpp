// `trireme cost`: what each algorithm costs on some machine, counted from its schedule beside its closed form.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/units.h"
#include "trireme/cli/command.h"
#include "trireme/cli/cost_table.h"
#include "trireme/cli/terminal.h"

namespace trireme::cli {
namespace {

constexpr std::size_t kElementBytes = 4;
constexpr int kMostCostRanks = 4096;
constexpr std::string_view kServerNote = "by formula only: a separate server is no rank, so there is no schedule";

struct CostOptions {
  std::string ranks = "8", bytes = "100M", alpha = "5us", beta, bandwidth, gamma = "0.05ns", sync = "300ns",
              memory = "38G", wires, collective = "all";
  bool json = false;
};

// Everything a table is about.
struct Setting {
  int ranks;
  std::uint64_t bytes;
  LinkModel model;
  bool both = false;  // all-reduce with one wire as well, for the table
  std::vector<Collective> collectives;
};

Setting setting_of(const CostOptions& options) {
  Setting setting;
  setting.ranks = static_cast<int>(parse_integer(options.ranks, "--ranks", 1, kMostCostRanks));
  setting.bytes = parse_size(options.bytes, "--bytes");
  if (setting.bytes % kElementBytes != 0) {
    throw ConfigError(
        fmt::format("--bytes: {} is not a multiple of {}, the size of an element", options.bytes, kElementBytes));
  }
  // Sums over all pairs of ranks must fit 64 bits.
  if (static_cast<double>(setting.bytes) * setting.ranks * setting.ranks > 0x1p62) {
    throw ConfigError(fmt::format("--bytes: {} on {} ranks is more than can be counted", options.bytes, options.ranks));
  }
  LinkModel& model = setting.model;
  model.message.start = parse_seconds(options.alpha, "--alpha");
  model.message.slope = !options.beta.empty()        ? parse_seconds(options.beta, "--beta")
                        : !options.bandwidth.empty() ? 1 / parse_rate(options.bandwidth, "--bandwidth")
                                                     : model.message.slope;
  model.gamma = parse_seconds(options.gamma, "--gamma");
  model.sync = parse_seconds(options.sync, "--sync");
  // The memory's rate is for all ranks together.
  model.memory = {0, {}, setting.ranks / parse_rate(options.memory, "--memory-bandwidth")};
  model.wires = options.wires == "one" ? Wires::one : Wires::many;
  setting.both = options.wires.empty() && !options.json;
  if (options.collective == "all") {
    setting.collectives = {Collective::all_reduce,     Collective::broadcast,  Collective::reduce,
                           Collective::scatter,        Collective::gather,     Collective::all_gather,
                           Collective::reduce_scatter, Collective::all_to_all, Collective::barrier};
  } else {
    setting.collectives = {parse_collective(options.collective)};
  }
  return setting;
}

CostRow price(const Algorithm& algorithm, const Setting& setting) {
  CostRow row;
  PricedCall& priced = row.priced;
  priced.algorithm = &algorithm;
  std::size_t elements = algorithm.what == Collective::barrier ? 0 : setting.bytes / kElementBytes;
  std::size_t ranks = static_cast<std::size_t>(setting.ranks);
  std::size_t count = has_blocks(algorithm.what) ? (elements + ranks - 1) / ranks : elements;
  priced.shape = {algorithm.what, 0, setting.ranks, 0, count, count};
  priced.element_bytes = kElementBytes;
  priced.count = count_schedule(algorithm, priced.shape, kElementBytes);
  const LinkModel& model = setting.model;
  priced.wires = model.wires;
  priced.seconds = predict(algorithm, priced.shape, DType::f32, model);
  std::size_t whole = has_blocks(algorithm.what) ? count * ranks : count;
  priced.form = closed_form(algorithm.what, algorithm.name,
                            {setting.ranks, static_cast<double>(whole * kElementBytes), model.message.start,
                             model.message.slope, model.gamma});
  row.note = algorithm.shared ? "shared memory: no wires, and no closed form in textbooks" : difference_note(priced);
  if (setting.both && !algorithm.shared && algorithm.what == Collective::all_reduce) {
    PricedCall alone = priced;
    alone.wires = Wires::one;
    LinkModel one = model;
    one.wires = Wires::one;
    alone.seconds = row.seconds_one = predict(algorithm, priced.shape, DType::f32, one);
    if (row.note.empty()) row.note = difference_note(alone);
  }
  if (whole > elements) {
    row.note += fmt::format("{}{} elements do not divide by {}: blocks are rounded up to {}",
                            row.note.empty() ? "" : "; ", elements, ranks, count);
  }
  return row;
}

CostRow parameter_server(const Setting& setting) {
  CostRow row;
  row.priced.shape.what = Collective::all_reduce;
  row.priced.shape.ranks = setting.ranks;
  row.priced.wires = setting.model.wires;
  row.priced.form =
      parameter_server_form({setting.ranks, static_cast<double>(setting.bytes), setting.model.message.start,
                             setting.model.message.slope, setting.model.gamma});
  row.priced.seconds = row.priced.form->time(row.priced.wires).value;
  row.note = kServerNote;
  return row;
}

std::vector<CostRow> price_all(const Setting& setting) {
  std::vector<CostRow> rows;
  for (Collective what : setting.collectives) {
    for (const Algorithm* algorithm : algorithms_for(what)) rows.push_back(price(*algorithm, setting));
    if (what == Collective::all_reduce) rows.push_back(parameter_server(setting));
  }
  return rows;
}

nlohmann::ordered_json to_json(const CostRow& row, const Setting& setting) {
  const PricedCall& priced = row.priced;
  const Count& count = priced.count;
  nlohmann::ordered_json json{{"collective", name(row.what())},
                              {"algorithm", row.name()},
                              {"ranks", setting.ranks},
                              {"bytes", row.what() == Collective::barrier ? 0 : setting.bytes}};
  if (priced.algorithm) {
    json.update({{"wires", count.wires},
                 {"rounds", count.rounds},
                 {"bytes_per_round", count.bytes_per_round},
                 {"total_bytes", count.total_bytes},
                 {"time_s", priced.seconds}});
  }
  auto add_forms = [&](std::string_view suffix) {
    auto add = [&](std::string key, auto member) {
      key += suffix;
      json[key] = priced.form ? nlohmann::ordered_json(((*priced.form).*member).value) : nlohmann::ordered_json();
    };
    add("wires", &ClosedForm::wires);
    add("rounds", &ClosedForm::rounds);
    add("bytes_per_round", &ClosedForm::bytes_per_round);
    add("total_bytes", &ClosedForm::total_bytes);
    add("time_s", priced.wires == Wires::one ? &ClosedForm::time_one : &ClosedForm::time_many);
  };
  if (!priced.algorithm) add_forms("");
  add_forms("_formula");
  json["note"] = row.note;
  json["counted"] = priced.algorithm != nullptr;
  if (priced.algorithm) {
    json["sent_per_round"] = count.sent_per_round;
    json["max_sent"] = count.max_sent;
    json["max_received"] = count.max_received;
    json["max_reduced"] = count.max_reduced;
  }
  if (row.shared()) {
    json["loaded"] = count.loaded;
    json["stored"] = count.stored;
  }
  return json;
}

void print_tables(const Setting& setting, const std::vector<CostRow>& rows) {
  const LinkModel& model = setting.model;
  fmt::print("{} rank{}, n = {} bytes per rank, {}-byte elements\n", setting.ranks, setting.ranks == 1 ? "" : "s",
             format_size(setting.bytes), kElementBytes);
  fmt::print("α = {} per message, β = {:.4g} ns per byte ({:.4g} GB/s), γ = {:.4g} ns per byte reduced\n\n",
             format_seconds(model.message.start), model.message.slope * 1e9, 1e-9 / model.message.slope,
             model.gamma * 1e9);
  Terminal terminal = standard_output();
  CostTableStyle style;
  style.width = terminal.width;
  style.color = terminal.color;
  style.both = setting.both;
  fmt::print("{}", cost_tables(rows, style));
}

void cost(const CostOptions& options) {
  Setting setting = setting_of(options);
  std::vector<CostRow> rows = price_all(setting);
  if (!options.json) return print_tables(setting, rows);
  for (const CostRow& row : rows) fmt::print("{}\n", to_json(row, setting).dump());
}

}  // namespace

void add_cost(CLI::App& app) {
  auto options = std::make_shared<CostOptions>();
  CLI::App* command = app.add_subcommand("cost", "What each algorithm costs: counted, and by formula");
  command->add_option("-n,--ranks,--workers,--nproc-per-node", options->ranks, "Ranks P (default 8)");
  command->add_option("--bytes", options->bytes,
                      "Bytes n of the vector on each rank, or of all P blocks together (default 100M)");
  command->add_option("--alpha", options->alpha, "Time per message: 5us, 1e-6 (default 5us)");
  auto* beta = command->add_option("--beta", options->beta, "Time per byte: 0.1ns, 1e-10 (default 0.1ns)");
  command->add_option("--bandwidth", options->bandwidth, "Instead of --beta, bytes a second: 10G, 1.5GB/s")
      ->excludes(beta);
  command->add_option("--gamma", options->gamma, "Time per byte reduced (default 0.05ns)");
  command->add_option("--sync", options->sync, "Shared memory: time of one synchronization (default 300ns)");
  command->add_option("--memory-bandwidth", options->memory,
                      "Shared memory: bytes a second for all ranks together (default 38G)");
  command
      ->add_option("--wires", options->wires,
                   "one: a rank sends one message at a time; many: a wire to every peer (default: both in the table "
                   "of all-reduce, elsewhere many)")
      ->check(CLI::IsMember({"one", "many"}));
  command->add_option("--collective", options->collective, "Only this one (default all)");
  command->add_flag("--json", options->json, "One object per line and algorithm");
  command->callback([options] { cost(*options); });
}

}  // namespace trireme::cli
