#include "trireme/cli/bench/ops/ops_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "trireme/base/error.h"
#include "trireme/base/hardware/blas_core.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/cli/bench/ops/memory_speed.h"
#include "trireme/cli/bench/ops/op_rows.h"
#include "trireme/cli/bench/ops/zoo_ops.h"
#include "trireme/cli/refuse.h"
#include "trireme/ops/parallel.h"
#include "trireme/ops/peak.h"

namespace trireme::bench {
namespace {

constexpr std::string_view kOurs = "trireme";

struct OpsFlags {
  std::string model, batch, length, threads, rounds = "9";
  std::vector<std::string> families, shapes, implementations, peers;
  bool json = false;
};

struct OpCase {
  const OpFamily* family = nullptr;
  OpShape shape;
  int layers = 1;
};

// Those named, in the order of the list; all where none is.
std::vector<const OpFamily*> families_of(const OpsFlags& flags) {
  std::vector<const OpFamily*> chosen;
  for (const std::string& name : flags.families) find_op_family(name);
  for (const OpFamily& family : op_families()) {
    if (flags.families.empty() || std::ranges::find(flags.families, family.name) != flags.families.end())
      chosen.push_back(&family);
  }
  return chosen;
}

// A shape by its family's form; without --op that of convolutions.
OpCase case_of(const OpsFlags& flags, const std::string& text) {
  if (flags.families.size() > 1) throw ConfigError("--shape: is of one family; name one with --op");
  constexpr double kMostBytes = 0x1p36;
  const OpFamily& family = flags.families.empty() ? op_families().front() : find_op_family(flags.families[0]);
  OpCase it{&family, family.parse(family, text), 1};
  if (family.work(it.shape, ops::Pass::forward).bytes > kMostBytes) {
    throw ConfigError(fmt::format("--shape: the tensors of '{}' take more than 64 GiB", clipped(text)));
  }
  return it;
}

std::vector<OpCase> cases_of(const CLI::App& command, const OpsFlags& flags) {
  std::vector<OpCase> cases;
  for (const std::string& text : flags.shapes) cases.push_back(case_of(flags, text));
  if (flags.model.empty() && !cases.empty()) {
    cli::refuse_given(command, {"--batch", "--length"}, "has no meaning with --shape, which has its own");
    return cases;
  }
  const ZooModel& model = find_zoo_model(flags.model.empty() ? zoo_models().front().name : flags.model);
  if (model.length == 0) {
    cli::refuse_given(command, {"--length"}, fmt::format("{} takes images; it belongs to texts", model.name));
  }
  constexpr int64_t kMostRows = 1 << 16;
  const int64_t batch = flags.batch.empty() ? model.batch : parse_integer(flags.batch, "--batch", 1, kMostRows);
  const int64_t length = flags.length.empty() ? model.length : parse_integer(flags.length, "--length", 1, kMostRows);
  const auto chosen = families_of(flags);
  for (ZooOp& op : model.ops(batch, length)) {
    const OpFamily* const family = &find_op_family(op.family);
    if (std::ranges::find(chosen, family) != chosen.end()) cases.push_back({family, std::move(op.shape), op.layers});
  }
  if (cases.empty()) {
    throw ConfigError(fmt::format("--op: {} has no {}", model.name, fmt::join(flags.families, " and no ")));
  }
  return cases;
}

// Of the families in use.
void check_implementations(const OpsFlags& flags, const std::vector<OpCase>& cases) {
  std::vector<std::string_view> names;
  for (const OpCase& it : cases) {
    for (const std::string& name : it.family->implementations) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : flags.implementations) {
    if (std::ranges::find(names, name) == names.end()) not_one_of("--implementations", name, names);
  }
}

std::vector<OpPeer> peers_of(const OpsFlags& flags, const std::vector<OpPeer>& all) {
  std::vector<OpPeer> chosen;
  for (const std::string& name : flags.peers) {
    const auto found = std::ranges::find(all, name, &OpPeer::name);
    if (found == all.end()) {
      std::vector<std::string_view> names;
      for (const OpPeer& peer : all) names.push_back(peer.name);
      not_one_of("--peers", name, names);
    }
    found->require();
    chosen.push_back(*found);
  }
  return chosen;
}

std::vector<OpRival> rivals_of(const OpsFlags& flags, const OpCase& it, ops::Pass pass,
                               const std::vector<OpPeer>& peers) {
  std::vector<OpRival> rivals;
  const auto wanted = [&](const std::string& name) {
    const auto& listed = flags.implementations.empty() ? it.family->unless_named : flags.implementations;
    return (std::ranges::find(listed, name) != listed.end()) != flags.implementations.empty();
  };
  for (Contender& contender : it.family->contenders(it.shape, pass)) {
    if (wanted(contender.implementation)) rivals.push_back({std::string(kOurs), "", std::move(contender)});
  }
  if (rivals.empty()) return rivals;
  for (const OpPeer& peer : peers) {
    for (const auto& [family, contenders] : peer.operators) {
      if (family != it.family->name) continue;
      for (Contender& contender : contenders(it.shape, pass))
        rivals.push_back({std::string(peer.name), peer.version(), std::move(contender)});
    }
  }
  return rivals;
}

// Ours and a peer's over the passes that both have.
struct OpsTotal {
  int passes = 0;
  double ours = 0, theirs = 0;  // seconds, each by its fastest
};

void add_to_totals(const std::vector<OpRow>& rows, int layers, std::map<std::string, OpsTotal>& totals) {
  std::map<std::string, double> least;
  for (const OpRow& row : rows) {
    double& kept = least.try_emplace(row.peer, row.p50()).first->second;
    kept = std::min(kept, row.p50());
  }
  const double ours = least.at(std::string(kOurs));
  for (const auto& [peer, seconds] : least) {
    OpsTotal& total = totals[peer];
    total.passes += layers;
    total.ours += layers * ours;
    total.theirs += layers * seconds;
  }
}

void run_ops_command(const CLI::App& command, const OpsFlags& flags, const std::vector<OpPeer>& known) {
  if (!flags.threads.empty()) ops::set_threads(static_cast<int>(parse_integer(flags.threads, "--threads", 1, 1024)));
  const auto rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  const auto cases = cases_of(command, flags);
  check_implementations(flags, cases);
  if (!flags.peers.empty()) set_blas_core();
  const auto peers = peers_of(flags, known);
  const OpPeaks peaks{ops::measure_peak() * ops::threads(), measure_memory()};
  const OpRowPrinter printer(peaks, flags.json);
  for (const OpPeer& peer : peers) {
    if (!flags.json) fmt::print("{}: {}, {}\n", peer.name, peer.what, peer.version());
  }
  printer.header(rounds);
  std::map<std::string, OpsTotal> totals;
  double flops = 0;
  for (const OpCase& it : cases) {
    for (const OpPass& pass : it.family->passes) {
      const auto rows = measure_rivals(rivals_of(flags, it, pass.pass, peers), rounds);
      for (const OpRow& row : rows) printer.row(*it.family, pass, it.shape, it.layers, row);
      if (rows.empty()) continue;
      add_to_totals(rows, it.layers, totals);
      flops += it.layers * it.family->work(it.shape, pass.pass).flops;
    }
  }
  if (flags.json) return;
  for (const auto& [peer, total] : totals) {
    if (peer == kOurs) {
      fmt::print("all layers and passes, each by its fastest: {:.2f} ms, {:.0f} GFLOP/s, {:.2f} of the peak\n",
                 total.ours * 1e3, flops / total.ours * 1e-9, flops / total.ours / peaks.flops);
    } else {
      fmt::print("the {} layers and passes that {} has: ours {:.2f} ms, {} {:.2f} ms, ratio {:.2f}\n", total.passes,
                 peer, total.ours * 1e3, peer, total.theirs * 1e3, total.ours / total.theirs);
    }
  }
}

std::string shape_help() {
  std::string text = "forms of --shape, by --op:\n";
  for (const OpFamily& family : op_families()) {
    text += fmt::format("  {} {}, as in {}\n", family.name, family.form, family.example);
  }
  return text;
}

template <class List, class Name>
std::string names_in(const List& list, Name name) {
  std::string text;
  for (const auto& it : list) text += (text.empty() ? "" : ", ") + std::string(std::invoke(name, it));
  return text;
}

}  // namespace

void add_ops_command(CLI::App& command, std::vector<OpPeer> peers, std::string_view elsewhere) {
  auto flags = std::make_shared<OpsFlags>();
  command.footer(shape_help());
  command.add_option("--op", flags->families, "Only these families: " + names_in(op_families(), &OpFamily::name))
      ->delimiter(',');
  command.add_option("--model", flags->model,
                     "The operators of this model: " + names_in(zoo_models(), &ZooModel::name) + " (default resnet18)");
  command.add_option("--batch", flags->batch, "With --model: samples of a batch (default: as in bench step)");
  command.add_option("--length", flags->length, "With --model: tokens of a text (default: as in bench step)");
  command
      .add_option("--shape", flags->shapes,
                  "An operator of this shape; a convolution unless --op says otherwise; forms below")
      ->allow_extra_args(false);
  command
      .add_option("--implementations", flags->implementations,
                  "Only these, as the rows name them (default: all but direct, reference and bf16)")
      ->delimiter(',');
  command
      .add_option("--peers", flags->peers,
                  "Also measure " + names_in(peers, &OpPeer::name) + (elsewhere.empty() ? "" : ", ") +
                      std::string(elsewhere) + ", in turn with ours")
      ->delimiter(',');
  command.add_option("--threads", flags->threads, "Default: as many as OpenMP takes");
  command.add_option("--rounds", flags->rounds, "How often each has its turn")->capture_default_str();
  command.add_flag("--json", flags->json, "One JSON object a line");
  command.callback([flags, &command, peers = std::move(peers)] { run_ops_command(command, *flags, peers); });
}

}  // namespace trireme::bench
