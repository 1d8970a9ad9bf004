#include "trireme/parallel/tensor/layer_splitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/nn/dropout.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {
namespace {

using torch::Tensor;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string text_of(const Placement& placement) {
  return placement.whole() ? "whole" : fmt::format("{} along {}", fmt::join(placement.sizes, "+"), placement.dim);
}

// Evaluation for a while; then every module as it was.
class Evaluation {
 public:
  explicit Evaluation(torch::nn::Module& model) : model_(model), own_(model.is_training()) {
    for (auto& part : model.modules(/*include_self=*/false)) before_.emplace_back(part, part->is_training());
    model.eval();
  }
  ~Evaluation() {
    model_.train(own_);
    for (auto& [part, training] : before_) part->train(training);
  }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  torch::nn::Module& model_;
  bool own_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> before_;
};

}  // namespace

LayerSplitter::LayerSplitter(torch::nn::Module& model, Communicator& comm,
                             const std::vector<std::pair<std::string, std::string>>& kinds)
    : comm_(comm), model_(model) {
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    auto* layer = dynamic_cast<nn::Layer*>(item.value().get());
    if (!layer) continue;
    Entry entry{item.key(), item.value(), layer};
    for (const auto& [name, kind] : kinds) {
      if (name != entry.name) continue;
      const auto known = kinds_of(*entry.module);
      entry.kind = &*std::ranges::find(known, kind, &SplitKind::name);
    }
    entries_.push_back(std::move(entry));
  }
  for (const auto& item : model.named_parameters()) names_[item.value().unsafeGetTensorImpl()] = item.key();
  for (const auto& item : model.named_buffers()) names_[item.value().unsafeGetTensorImpl()] = item.key();
}

LayerSplitter::~LayerSplitter() {
  if (finished_) return;
  for (auto& entry : entries_) entry.layer->set_split(nullptr);
}

void LayerSplitter::listen() {
  for (auto& entry : entries_) {
    auto split = std::make_shared<nn::Split>();
    split->forward = [&entry](const Tensor& input) {
      entry.calls.push_back({input.sizes().vec()});
      return entry.layer->plain(input);
    };
    if (auto* table = entry.module->as<nn::EmbeddingImpl>()) {
      split->scores = [&entry, table](const Tensor& input, const Tensor& bias) {
        entry.score_calls.push_back({input.sizes().vec()});
        return table->plain_scores(input, bias);
      };
    }
    entry.layer->set_split(split);
  }
}

void LayerSplitter::intercept() {
  for (auto& entry : entries_) {
    auto split = std::make_shared<nn::Split>();
    split->forward = [this, &entry](const Tensor& input) { return arrive(entry, input); };
    split->scores = [this, &entry](const Tensor& input, const Tensor& bias) {
      return arrive_scores(entry, input, bias);
    };
    entry.layer->set_split(split);
  }
}

Placement LayerSplitter::placement_of(const std::string& name, const Shape& shape, const Tensor& tensor) {
  constexpr std::size_t kMostDims = 8;
  Shape own(kMostDims + 1, 0);
  own[0] = tensor.dim();
  for (std::size_t d = 0; d < std::min<std::size_t>(kMostDims, tensor.dim()); ++d) own[d + 1] = tensor.size(d);
  const Shape all = all_gathered(own, comm_);
  auto size = [&](int rank, std::size_t d) { return all[rank * (kMostDims + 1) + d]; };

  Placement found;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    if (size(rank, 0) != static_cast<std::int64_t>(shape.size())) {
      throw ConfigError(fmt::format("tensor rules: {} gets {} dimensions instead of {} after {}", name, size(rank, 0),
                                    shape.size(), last_));
    }
  }
  for (std::size_t d = 1; d < std::min(shape.size(), kMostDims); ++d) {
    Shape sizes;
    std::int64_t sum = 0;
    for (int rank = 0; rank < comm_.size(); ++rank) sum += sizes.emplace_back(size(rank, d + 1));
    if (std::ranges::all_of(sizes, [&](auto one) { return one == shape[d]; })) continue;
    if (!found.whole() || sum != shape[d]) {
      throw ConfigError(
          fmt::format("tensor rules: {} gets {} of {} along dimension {} after {}, which are no parts of "
                      "it; split what is between them too, or leave {} whole",
                      name, fmt::join(sizes, "+"), shape[d], d, last_, last_));
    }
    found = {static_cast<std::int64_t>(d), sizes};
  }
  return found;
}

SplitRequest LayerSplitter::request_of(const Entry& entry, const Call& call) {
  return {comm_,
          entry.rule(),
          call.shape,
          call.placement,
          [this, &entry](Tensor tensor, const Cut& how) { cut(entry, std::move(tensor), how); },
          [this] { batch_gathered_ = true; }};
}

void LayerSplitter::cut(const Entry& entry, Tensor tensor, const Cut& how) {
  auto name = names_.find(tensor.unsafeGetTensorImpl());
  if (name == names_.end()) {
    throw ConfigError(fmt::format("tensor rule {}: the model does not know a tensor of this layer", entry.rule()));
  }
  if (!cuts_.emplace(name->second, how).second) {
    throw ConfigError(fmt::format("tensor rule {}: {} was cut already, by another layer that has it too", entry.rule(),
                                  name->second));
  }
  tensor.set_data(local_of(tensor.detach(), how, comm_.rank()));
  tensor.mutable_grad().reset();
}

void LayerSplitter::make(Entry& entry, const Call& call) {
  entry.fitted = true;
  if (entry.kind) {
    entry.made = entry.kind->make(*entry.module, request_of(entry, call));
    last_ = entry.rule();
  } else if (!call.placement.whole()) {
    entry.made = make_unsplit(*entry.module, request_of(entry, call), last_);
  }
  if (entry.made) {
    report_.push_back(
        fmt::format("{}{}, input {}", entry.rule(), entry.kind ? "" : " gathers", text_of(call.placement)));
  }
}

Tensor LayerSplitter::arrive(Entry& entry, const Tensor& input) {
  if (entry.called >= entry.calls.size()) {
    throw ConfigError(fmt::format("tensor rules: {} is used more often once layers are split", entry.name));
  }
  Call& call = entry.calls[entry.called++];
  call.placement = placement_of(entry.name, call.shape, input);
  const bool dropout = entry.module->as<nn::DropoutImpl>() != nullptr;
  if (!entry.fitted && !dropout) make(entry, call);
  (batch_gathered_ ? entry.behind_batch : entry.before_batch) = true;  // one that gathers counts as behind
  if (dropout) return input;
  if (call.placement != entry.calls[0].placement) {
    throw ConfigError(fmt::format("tensor rules: {} is used twice, with an input that is {} and one that is {}",
                                  entry.name, text_of(entry.calls[0].placement), text_of(call.placement)));
  }
  return entry.made ? entry.made->forward(input) : entry.layer->plain(input);
}

Tensor LayerSplitter::arrive_scores(Entry& entry, const Tensor& input, const Tensor& bias) {
  auto& table = *entry.module->as<nn::EmbeddingImpl>();
  Call& call = entry.score_calls.at(entry.scored++);
  call.placement = placement_of(entry.name, call.shape, input);
  (batch_gathered_ ? entry.behind_batch : entry.before_batch) = true;
  if (!entry.fitted) make(entry, Call{Shape{1}, {}});
  if (!entry.kind && call.placement.whole()) return table.plain_scores(input, bias);
  auto request = request_of(entry, call);
  if (entry.kind && bias.defined()) request.cut(bias, cuts_.at(names_.at(table.weight.unsafeGetTensorImpl())));
  if (!entry.made)
    entry.made = std::make_shared<nn::Split>(nn::Split{[&table](const Tensor& x) { return table.plain(x); }});
  entry.made->scores = [&table, enter = entry.kind ? shared_input(request) : whole_input(request)](
                           const Tensor& x, const Tensor& b) { return table.plain_scores(enter(x), b); };
  if (entry.kind) last_ = entry.rule();
  return entry.made->scores(input, bias);
}

// A dropout may be used in several places. Where its input is in parts it draws for the whole, so that all ranks go on
// with the same random numbers; which place it is, the shape tells.
void LayerSplitter::make_dropout(Entry& entry) {
  if (std::ranges::all_of(entry.calls, [](const Call& call) { return call.placement.whole(); })) return;
  auto local = [rank = comm_.rank()](const Call& call) {
    Shape shape = call.shape;
    if (!call.placement.whole()) shape[call.placement.dim] = call.placement.sizes[rank];
    return shape;
  };
  auto& dropout = *entry.module->as<nn::DropoutImpl>();
  entry.made = std::make_shared<nn::Split>();
  entry.made->forward = [&dropout, local, calls = entry.calls, rank = comm_.rank()](const Tensor& x) {
    // Exactly, or else but for lengths that may differ from the example's.
    for (bool exactly : {true, false}) {
      for (const auto& call : calls) {
        const Shape shape = local(call);
        if (static_cast<std::int64_t>(shape.size()) != x.dim()) continue;
        const auto& at = call.placement;
        if (exactly ? !std::equal(shape.begin() + 1, shape.end(), x.sizes().begin() + 1)
                    : !at.whole() && x.size(at.dim) != at.sizes[rank]) {
          continue;
        }
        return at.whole() ? dropout.plain(x)
                          : dropout.part(x, at.dim, Cut{at.dim, 1, at.sizes}.begin(rank), call.shape[at.dim]);
      }
    }
    return dropout.plain(x);
  };
}

void LayerSplitter::compare(const Tensor& whole, const Tensor& split, const Placement& placement) {
  auto expected = whole;
  if (!placement.whole()) expected = local_of(whole, {placement.dim, 1, placement.sizes}, comm_.rank());
  auto own = batch_gathered_ ? split.narrow(0, comm_.rank() * whole.size(0), whole.size(0)) : split;
  auto scale = whole.abs().max().to(torch::kFloat64), error = (own - expected).abs().max().to(torch::kFloat64);
  auto most = all_reduced(torch::stack({scale, error}).to(torch::kCPU), comm_, Op::max);
  const double size = most[0].item<double>(), difference = most[1].item<double>();
  const double epsilon = whole.scalar_type() == torch::kFloat64   ? 1e-9
                         : whole.scalar_type() == torch::kFloat32 ? 1e-3
                                                                  : 0.1;
  if (difference <= epsilon * size || !std::isfinite(size)) return;
  throw ConfigError(
      fmt::format("tensor rules: the split model's scores differ from the whole model's by {:.2g} of {:.2g}: "
                  "something between its layers needs more than the part it gets; the last layer split is {}",
                  difference, size, last_));
}

void LayerSplitter::finish() {
  for (auto& entry : entries_) {
    if (entry.kind && !entry.fitted) {
      throw ConfigError(fmt::format("tensor rule {}: the model does not use this layer", entry.rule()));
    }
    if (entry.module->as<nn::DropoutImpl>()) make_dropout(entry);
    entry.layer->set_split(entry.made);
  }
  finished_ = true;
}

std::vector<std::string> LayerSplitter::before_batch() const {
  std::vector<std::string> names;
  if (!batch_gathered_) return names;
  std::map<const void*, bool> before;
  for (const auto& entry : entries_) {
    for (const auto& parameter : entry.module->parameters()) {
      const bool both = entry.before_batch && entry.behind_batch;
      auto [known, added] = before.emplace(parameter.unsafeGetTensorImpl(), entry.before_batch);
      if (both || known->second != entry.before_batch) {
        throw ConfigError(fmt::format(
            "tensor rules: {} is used both before and behind the layer that gathers the batch", entry.name));
      }
    }
  }
  for (const auto& item : model_.named_parameters()) {
    auto known = before.find(item.value().unsafeGetTensorImpl());
    if (known == before.end()) {
      throw ConfigError(
          fmt::format("tensor rules: {} is of no layer of trireme::nn: it is not known whether it comes "
                      "before the layer that gathers the batch",
                      item.key()));
    }
    if (known->second) names.push_back(item.key());
  }
  return names;
}

Placement LayerSplitter::run(const Forward& forward, const Tensor& example) {
  torch::NoGradGuard no_grad;
  Evaluation evaluation(model_);
  const auto input = broadcast(example, comm_);
  listen();
  const auto whole = forward(input).clone();
  intercept();
  try {
    const auto split = forward(input);
    const auto placement = placement_of("the loss", whole.sizes().vec(), split);
    compare(whole, split, placement);
    finish();
    return placement;
  } catch (const c10::Error& error) {
    // Perhaps on this rank only: the others must not wait for it.
    auto why = fmt::format("tensor rules: the model fails on what {} leaves: {}", last_,
                           first_line(error.what_without_backtrace()));
    comm_.abort(why);
    throw ConfigError(why);
  }
}

}  // namespace trireme::parallel
