#include "trireme/train/checkpoint/worker_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "trireme/base/error.h"
#include "trireme/base/find_kind.h"
#include "trireme/sync/exchange/remembered.h"
#include "trireme/train/group/gather_text.h"

namespace trireme::train {
namespace {

constexpr std::string_view kWorkerPrefix = "worker.";
constexpr int kAll = -1;  // in place of a replica

std::string prefix_of(int replica, const ReplicaPart& here) {
  auto text = replica == kAll ? fmt::format("{}all.", kWorkerPrefix) : fmt::format("{}{}.", kWorkerPrefix, replica);
  return here.parts == 1 ? text : fmt::format("{}t{}.", text, here.part);
}

// Whose a tensor is.
struct Owner {
  int replica = kAll, part = 0;
  bool parts = false;     // the name says which
  std::string_view what;  // the rest of the name
};

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = !text.empty() && error == std::errc() && end == text.data() + text.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

std::optional<Owner> owner_of(std::string_view name) {
  if (!name.starts_with(kWorkerPrefix)) return std::nullopt;
  Owner owner;
  name.remove_prefix(kWorkerPrefix.size());
  auto word = name.substr(0, name.find('.'));
  if (word != "all") {
    const auto replica = number_in(word);
    if (!replica) return std::nullopt;
    owner.replica = *replica;
  }
  name.remove_prefix(std::min(name.size(), word.size() + 1));
  word = name.substr(0, name.find('.'));
  if (const auto part = word.starts_with('t') ? number_in(word.substr(1)) : std::nullopt) {
    owner.part = *part;
    owner.parts = true;
    name.remove_prefix(std::min(name.size(), word.size() + 1));
  }
  owner.what = name;
  return owner;
}

torch::Tensor copied(std::span<const float> values) {
  auto tensor = torch::empty({static_cast<std::int64_t>(values.size())}, torch::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return tensor;
}

// A vector in the order of the weights as one tensor per parameter.
class ByParameter {
 public:
  explicit ByParameter(Learners& learners) : outline_(FlatModel::outline(learners.first().model())) {}
  // use(parameter, its part)
  template <typename Use>
  void each(std::span<float> values, const Use& use) const {
    std::size_t at = 0;
    for (const auto& tensor : outline_) {
      use(tensor.name, values.subspan(at, tensor.count));
      at += tensor.count;
    }
  }

 private:
  std::vector<ps::Tensor> outline_;
};

void add_codes(const std::string& prefix, sync::CompressedMean& codes, NamedTensors& to) {
  const auto kept = sync::remembered(codes);
  for (const auto& [name, values] : kept.floats) to.emplace_back(prefix + name, copied(values));
  for (const auto& [name, bytes] : kept.bytes) {
    auto tensor = torch::empty({static_cast<std::int64_t>(bytes.size())}, torch::kUInt8);
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
    to.emplace_back(prefix + name, tensor);
  }
}

// Back again, of those whose names begin so.
class Found {
 public:
  explicit Found(const NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) by_name_[name] = tensor;
  }
  const torch::Tensor* find(const std::string& name, torch::ScalarType type) const {
    const auto found = by_name_.find(name);
    return found != by_name_.end() && found->second.scalar_type() == type ? &found->second : nullptr;
  }
  // False where it is not there, or of another size.
  bool copy(const std::string& name, std::span<float> to) const {
    const auto* tensor = find(name, torch::kFloat32);
    if (!tensor || tensor->numel() != static_cast<std::int64_t>(to.size())) return false;
    std::copy_n(tensor->contiguous().data_ptr<float>(), to.size(), to.begin());
    return true;
  }
  NamedTensors under(const std::string& prefix) const {
    NamedTensors found;
    for (auto at = by_name_.lower_bound(prefix); at != by_name_.end() && at->first.starts_with(prefix); ++at) {
      found.emplace_back(at->first.substr(prefix.size()), at->second);
    }
    return found;
  }
  sync::Remembered codes(const std::string& prefix) const {
    sync::Remembered kept;
    for (const auto& [name, tensor] : under(prefix)) {
      const auto flat = tensor.contiguous();
      if (tensor.scalar_type() == torch::kFloat32) {
        const auto* first = flat.data_ptr<float>();
        kept.floats[name].assign(first, first + flat.numel());
      } else {
        const auto* first = static_cast<const std::byte*>(flat.data_ptr());
        kept.bytes[name].assign(first, first + flat.nbytes());
      }
    }
    return kept;
  }

 private:
  std::map<std::string, torch::Tensor> by_name_;
};

// One worker going on.
class Restoring {
 public:
  Restoring(const WorkerStates& kept, sync::Strategy& strategy, Learners& learners, const ReplicaPart& here)
      : found_(kept.tensors),
        was_(kept),
        strategy_(strategy),
        learners_(learners),
        here_(here),
        by_parameter_(learners) {}

  std::vector<std::string> run() {
    if (was_.replicas > 0 && was_.parts != here_.parts) {
      lines_.push_back(fmt::format(
          "layers were cut into {} part{} and are now into {}: errors that codecs carried, and what workers "
          "had apart from the model, are dropped",
          was_.parts, was_.parts == 1 ? "" : "s", here_.parts));
      return lines_;
    }
    if (strategy_.traits().uses_weights) restore_strategy();
    for (const auto& [name, codes] : strategy_.coded()) restore_codes(name, *codes);
    return lines_;
  }

 private:
  bool as_many() const { return was_.replicas == here_.replicas; }

  void restore_strategy() {
    for (const auto& kept : strategy_.state()) {
      if (!was_.same_strategy || (!kept.alike && !as_many())) continue;
      const auto prefix = prefix_of(kept.alike ? kAll : here_.replica, here_) + "strategy.";
      by_parameter_.each(kept.values, [&](const std::string& name, std::span<float> part) {
        found_.copy(fmt::format("{}{}.{}", prefix, name, kept.name), part);
      });
    }
    if (strategy_.traits().apart && !as_many()) {
      if (!strategy_.traits().own_pace) {
        lines_.push_back(was_.replicas == 0 ? "nothing of workers' own was kept: each goes on from the model"
                                            : fmt::format("{} replicas instead of {}: each goes on from the model, "
                                                          "without what they had apart from it",
                                                          here_.replicas, was_.replicas));
      }
      return;
    }
    const auto prefix = prefix_of(strategy_.traits().apart ? here_.replica : kAll, here_);
    const bool expected = was_.same_strategy || strategy_.traits().apart;
    if (!strategy_.traits().owns_step && !restore_learners(prefix) && !strategy_.traits().own_pace && expected) {
      lines_.push_back("not all that workers had apart from the model was kept: they go on from it");
    }
    const auto* numbers = found_.find(prefix + "numbers", torch::kFloat64);
    if (numbers && was_.same_strategy) {
      strategy_.set_numbers({numbers->data_ptr<double>(), static_cast<std::size_t>(numbers->numel())});
    }
  }

  bool restore_learners(const std::string& prefix) {
    if (!found_.under(fmt::format("{}optimizer.{}.", prefix, learners_.size())).empty())
      return false;  // there were more
    bool all = true;
    for (int k = 0; k < static_cast<int>(learners_.size()); ++k) {
      auto& learner = learners_[k];
      const auto state = optimizer_state(fmt::format("{}optimizer.{}.", prefix, k), learner);
      if (!state.empty()) learner.optimizer->load(state);
      if (strategy_.traits().own_pace) continue;  // weights that are read while they are written
      by_parameter_.each(learner.flat->replica().weights, [&](const std::string& name, std::span<float> part) {
        all = found_.copy(fmt::format("{}weights.{}.{}", prefix, k, name), part) && all;
      });
    }
    return all;
  }

  // Of the parameters that are here: on a mesh other stages have others.
  NamedTensors optimizer_state(const std::string& prefix, Learner& learner) const {
    NamedTensors state;
    for (const auto& [name, parameter] : Learner::parameters(learner.model())) {
      for (const auto& [quantity, tensor] : found_.under(fmt::format("{}{}.", prefix, name))) {
        state.emplace_back(fmt::format("{}.{}", name, quantity), tensor);
      }
    }
    return state;
  }

  void restore_codes(const std::string& which, sync::CompressedMean& codes) {
    auto kept_by = [&](int replica) {
      return found_.codes(fmt::format("{}codes.{}.", prefix_of(replica, here_), which));
    };
    sync::Remembered mine;
    if (as_many()) {
      mine = kept_by(here_.replica);
    } else {
      std::vector<sync::Remembered> others;
      for (int replica = 0; replica < was_.replicas; ++replica) others.push_back(kept_by(replica));
      if (!std::ranges::all_of(others, &sync::Remembered::empty)) {
        mine = sync::shared_out(codes, others);
        lines_.push_back(fmt::format("{} replicas instead of {}: the errors that codecs carried are shared out equally",
                                     here_.replicas, was_.replicas));
      }
    }
    const auto lacking = sync::recall(codes, mine);
    if (lacking.empty()) return;
    constexpr std::size_t kNamed = 3;
    const auto named = std::span(lacking).first(std::min(lacking.size(), kNamed));
    lines_.push_back(fmt::format("nothing, or not all, was kept of what codecs carried of {}{}: it begins from nothing",
                                 fmt::join(named, ", "),
                                 lacking.size() > kNamed ? fmt::format(" and {} more", lacking.size() - kNamed) : ""));
  }

  const Found found_;
  const WorkerStates& was_;
  sync::Strategy& strategy_;
  Learners& learners_;
  const ReplicaPart here_;
  const ByParameter by_parameter_;
  std::vector<std::string> lines_;
};

}  // namespace

NamedTensors worker_state(sync::Strategy& strategy, Learners& learners, const ReplicaPart& here) {
  NamedTensors own;
  const auto mine = prefix_of(here.replica, here), of_all = prefix_of(kAll, here);
  const bool first = here.replica == 0;
  if (strategy.traits().uses_weights) {
    const ByParameter by_parameter(learners);
    for (const auto& kept : strategy.state()) {
      if ((kept.alike && !first) || strategy.traits().owns_step) continue;  // as an optimizer's: server_state.h
      by_parameter.each(kept.values, [&](const std::string& name, std::span<float> part) {
        own.emplace_back(fmt::format("{}strategy.{}.{}", kept.alike ? of_all : mine, name, kept.name), copied(part));
      });
    }
    const auto& prefix = strategy.traits().apart ? mine : of_all;
    const bool mine_to_keep = strategy.traits().apart || first;
    for (int k = 0; mine_to_keep && !strategy.traits().owns_step && k < static_cast<int>(learners.size()); ++k) {
      auto& learner = learners[k];
      for (const auto& [name, tensor] : learner.optimizer->state()) {
        own.emplace_back(fmt::format("{}optimizer.{}.{}", prefix, k, name),
                         tensor.detach().to(torch::kCPU, false, true));
      }
      if (strategy.traits().own_pace) continue;
      by_parameter.each(learner.flat->replica().weights, [&](const std::string& name, std::span<float> part) {
        own.emplace_back(fmt::format("{}weights.{}.{}", prefix, k, name), copied(part));
      });
    }
    // Of servers whoever writes has them, which need not be the first.
    if (auto numbers = strategy.numbers(); !numbers.empty() && (mine_to_keep || strategy.traits().owns_step)) {
      own.emplace_back(prefix + "numbers", torch::tensor(numbers, torch::kFloat64));
    }
  }
  for (const auto& [name, codes] : strategy.coded()) {
    add_codes(fmt::format("{}codes.{}.", mine, name), *codes, own);
  }
  return own;
}

NamedTensors gather_tensors(Communicator& everyone, NamedTensors mine) {
  auto outline = nlohmann::json::array();
  for (auto& [name, tensor] : mine) {
    tensor = tensor.contiguous();
    outline.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  const auto texts = gather_text(everyone, outline.dump());
  auto bytes = [](const torch::Tensor& tensor) { return View(tensor.data_ptr(), tensor.nbytes(), DType::u8); };
  if (everyone.rank() != 0) {
    for (const auto& [name, tensor] : mine) {
      if (tensor.nbytes() > 0) everyone.send(bytes(tensor), 0);
    }
    return {};
  }
  std::set<std::string> names;
  for (const auto& [name, tensor] : mine) names.insert(name);
  for (int rank = 1; rank < everyone.size(); ++rank) {
    for (const auto& row : nlohmann::json::parse(texts[static_cast<std::size_t>(rank)])) {
      auto tensor =
          torch::empty(row[2].get<std::vector<std::int64_t>>(), static_cast<torch::ScalarType>(row[1].get<int>()));
      if (tensor.nbytes() > 0) everyone.recv(bytes(tensor), rank);
      auto name = row[0].get<std::string>();
      if (names.insert(name).second) mine.emplace_back(std::move(name), tensor);
    }
  }
  return mine;
}

WorkerStates deal(LoadedCheckpoint& checkpoint, Communicator& everyone, const ReplicaPart& here) {
  NamedTensors all;
  auto outline = nlohmann::json::array();
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (!owner_of(name)) continue;
    outline.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
    all.emplace_back(name, tensor.contiguous());
  }
  std::erase_if(checkpoint.tensors, [](const auto& entry) { return owner_of(entry.first).has_value(); });
  auto text = outline.dump();
  broadcast_text(everyone, text);
  outline = nlohmann::json::parse(text);
  WorkerStates dealt;
  for (const auto& row : outline) {
    const auto name = row[0].get<std::string>();
    const auto owner = owner_of(name);
    dealt.replicas = std::max(dealt.replicas, owner->replica + 1);
    dealt.parts = std::max(dealt.parts, owner->part + 1);
  }
  // What is the same for all was kept though nobody had anything of his own.
  if (!outline.empty() && dealt.replicas == 0) dealt.replicas = here.replicas;
  for (std::size_t k = 0; k < outline.size(); ++k) {
    const auto& row = outline[k];
    auto name = row[0].get<std::string>();
    const auto type = static_cast<torch::ScalarType>(row[1].get<int>());
    auto tensor = everyone.rank() == 0 ? all[k].second : torch::empty(row[2].get<std::vector<std::int64_t>>(), type);
    if (everyone.size() > 1 && tensor.nbytes() > 0) {
      everyone.broadcast(View(tensor.data_ptr(), tensor.nbytes(), DType::u8));
    }
    const auto owner = *owner_of(name);
    const bool of_part = dealt.parts == here.parts && owner.parts == (here.parts > 1) && owner.part == here.part;
    const bool of_codes = dealt.replicas != here.replicas && owner.what.starts_with("codes.");
    if (of_part && (owner.replica == kAll || owner.replica == here.replica || of_codes)) {
      dealt.tensors.emplace_back(std::move(name), tensor);
    }
  }
  return dealt;
}

bool made_with(const LoadedCheckpoint& checkpoint, const std::string& file, const sync::StrategyKind& strategy) {
  const auto config = config_of(checkpoint, file);
  const auto* group = config.is_object() && config.contains("sync") ? &config["sync"] : nullptr;
  if (!group || !group->is_object() || !group->contains("strategy") || !(*group)["strategy"].is_string()) return false;
  return split_choice((*group)["strategy"].get_ref<const std::string&>()).first == strategy.name;
}

std::vector<std::string> restore(const WorkerStates& kept, sync::Strategy& strategy, Learners& learners,
                                 const ReplicaPart& here, const std::string& file) {
  try {
    return Restoring(kept, strategy, learners, here).run();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace trireme::train
