// What to say when no mesh fits.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/text/bytes_text.h"
#include "trireme/mesh/choice/mesh_choice.h"

namespace trireme::mesh {
namespace {

using Shard = Saving::Shard;

// The fastest mesh that fits with this saving, as a line; empty where none does.
std::string line_for(MeshQuestion question, const Saving& saving) {
  question.saving = saving;
  auto options = rank_meshes(question);
  if (!options[0].fits) return "";
  return fmt::format("{} with --mesh {} needs {} per worker", to_text(saving), to_text(options[0].shape),
                     bytes_text(options[0].memory_bytes));
}

// Of savings from the mildest on, the first that is enough.
void add_first(std::vector<std::string>& lines, const MeshQuestion& question, std::initializer_list<Saving> savings) {
  for (const Saving& saving : savings) {
    std::string line = line_for(question, saving);
    if (line.empty()) continue;
    lines.push_back(line);
    return;
  }
}

// The fewest workers, as stages alone, that are enough.
void add_workers(std::vector<std::string>& lines, const MeshQuestion& question) {
  auto most = static_cast<int>(std::min<std::size_t>(question.pieces.size(), 1024));
  for (int workers = question.workers + 1; workers <= most; ++workers) {
    MeshOption option = predict_mesh(question, {1, workers, 1});
    if (!option.possible || !option.fits) continue;
    lines.push_back(fmt::format("{} workers with --mesh {} need {} each", workers, to_text(option.shape),
                                bytes_text(option.memory_bytes)));
    return;
  }
}

}  // namespace

std::string to_text(const Saving& saving) {
  std::string text;
  if (saving.shard != Shard::none)
    text = fmt::format("--shard {}", kShardKindNames[static_cast<std::size_t>(saving.shard)]);
  if (saving.recompute_every > 0) {
    text += fmt::format("{}--recompute every:{}", text.empty() ? "" : " ", saving.recompute_every);
  }
  return text;
}

std::vector<std::string> what_would_fit(const MeshQuestion& question) {
  std::vector<std::string> lines;
  add_first(lines, question, {{Shard::optimizer, 0}, {Shard::gradients, 0}, {Shard::parameters, 0}});
  add_first(lines, question, {{Shard::none, 2}, {Shard::none, 4}, {Shard::none, 1}});
  if (lines.empty()) {
    add_first(lines, question,
              {{Shard::optimizer, 2},
               {Shard::gradients, 2},
               {Shard::parameters, 2},
               {Shard::parameters, 4},
               {Shard::parameters, 1}});
  }
  add_workers(lines, question);
  if (!lines.empty()) return lines;
  double factor = question.machine.state_factor;
  auto need = [&](const PieceCost& piece) {
    return static_cast<std::uint64_t>(static_cast<double>(piece.parameter_bytes) * factor) + piece.kept_bytes;
  };
  auto largest = std::ranges::max_element(question.pieces, {}, need);
  return {
      fmt::format("nothing would: '{}' alone needs {} and {} are there; smaller micro-batches or workers with more "
                  "memory are left",
                  largest->name, bytes_text(need(*largest)), bytes_text(question.machine.memory_bytes))};
}

}  // namespace trireme::mesh
