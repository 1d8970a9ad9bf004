#include "trireme/report/compare/comparison_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/report/compare/comparison_text.h"
#include "trireme/report/run_file.h"

namespace trireme::train {
namespace {

namespace fs = std::filesystem;

void write_all(const Comparison& comparison, const fs::path& folder) {
  write_atomically(folder / "compare.json",
                   to_json(comparison).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  write_atomically(folder / "compare.csv", comparison_csv(comparison));
  write_atomically(folder / "compare-curves.csv", comparison_curves_csv(comparison));
  write_atomically(folder / "compare.html", comparison_page(comparison));
}

// The last line that is a JSON object; null where there is none.
nlohmann::json last_object(const std::string& text) {
  nlohmann::json last;
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto json = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                                      text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (json.is_object()) last = std::move(json);
    at = end + 1;
  }
  return last;
}

// Without the name of the program that said it.
std::string reason(std::string line) {
  constexpr std::string_view kName = "trireme: ";
  return line.starts_with(kName) ? line.substr(kName.size()) : line;
}

ComparedRun outcome(const Child& child, const fs::path& out, bool stopped) {
  auto summary = last_object(child.output);
  auto run = summary.is_object() ? read_run(summary, out / "metrics.jsonl") : ComparedRun{};
  run.out = out.string();
  if (child.code == 0 && summary.is_object()) {
    run.status = "finished";
  } else if (stopped) {
    run.status = "stopped";
  } else {
    run.status = "failed";
    run.error = child.code == 0            ? "printed no summary"
                : !child.last_said.empty() ? reason(child.last_said)
                : child.code > 128         ? fmt::format("killed by signal {}", child.code - 128)
                                           : fmt::format("exit code {}", child.code);
  }
  return run;
}

}  // namespace

std::vector<std::string> train_command(const std::string& program, const Config& config) {
  std::vector<std::string> words{program, "train"};
  for (const auto& field : fields()) {
    const bool of_mesh = field.key == "run.workers" && told_mesh(config);
    if (field.key == "out.dir" || of_mesh) continue;  // as many workers as the mesh has
    words.insert(words.end(), {"--set", fmt::format("{}={}", field.key, value_text(config, field))});
  }
  for (const auto& [name, value] : config.model_args) {
    words.insert(words.end(), {"--set", fmt::format("model.args.{}={}", name, value)});
  }
  words.insert(words.end(), {"--json", "--out", config.out});
  return words;
}

int run_comparison(Comparison& comparison, const ComparisonPlace& place, const ComparisonWatch& watch) {
  fs::create_directories(place.folder);
  if (auto file = place.folder / "compare.json"; fs::exists(file)) {
    take_over(comparison, read_run_file(file), file.string());
  }
  int number = 0, ran = 0, of = static_cast<int>(comparison.planned * static_cast<std::size_t>(comparison.seeds));
  auto stopped = [&] { return place.stop && place.stop->asked(); };
  for (std::int64_t s = 0; s < comparison.seeds && !stopped(); ++s) {
    for (std::size_t v = 0; v < comparison.planned && !stopped(); ++v) {
      std::int64_t seed = comparison.base.seed + s;
      ++number;
      if (const auto* done = comparison.find(v, seed); done && done->finished()) continue;
      auto config = comparison.config_of(v, seed);
      fs::path out = place.folder / comparison.variants[v].folder / fmt::format("seed-{}", seed);
      remove_tree(out);  // what a run left that did not finish
      fs::create_directories(out.parent_path());
      config.out = out.string();
      if (watch.begins) watch.begins(number, of, fmt::format("{} seed={}", comparison.variants[v].label, seed));
      auto child = run_child(train_command(place.program, config), place.stop, watch.child);
      auto run = outcome(child, out, stopped());
      run.variant = v;
      run.seed = seed;
      ++ran;
      comparison.put(run);
      write_all(comparison, place.folder);
      if (watch.ends) watch.ends(number, of, run);
    }
  }
  if (ran == 0) write_all(comparison, place.folder);  // another target, perhaps
  return ran;
}

}  // namespace trireme::train
