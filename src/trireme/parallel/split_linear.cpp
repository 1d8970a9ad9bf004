// Linear layers and embeddings in parts. y = x·Wᵀ + b:
//   column  the outputs are split: each rank has rows of W and of b. x whole, y in parts.
//   heads   the same for the outputs of attention, whole heads to each rank in each group (query, key, value).
//   batch-column  the same, of the samples of all ranks, which are gathered on the way in (see repartition.h).
//   row     the inputs are split: each rank has columns of W. x in parts, the addends of y are summed, then b added.
//   vocabulary  each rank has rows of the table; it looks up its own, and the rest is zeros that the sum fills.
#include "trireme/grad/spare_core.h"
#include "trireme/nn/layers.h"
#include "trireme/parallel/fitting.h"
#include "trireme/parallel/maps.h"
#include "trireme/parallel/repartition.h"
#include "trireme/parallel/shared_linear.h"

namespace trireme::parallel {
namespace {

MadeSplit split_outputs(nn::LinearImpl& layer, const Fitting& fitting, const Cut& cut) {
  fitting.cut(layer.weight, cut);
  if (layer.bias.defined()) fitting.cut(layer.bias, cut);
  auto& comm = fitting.comm;
  const bool hidden = fitting.placement.whole() && grad::turn_for(comm, 0) == sync::Turn::background;
  if (hidden) {
    return std::make_shared<nn::Split>(nn::Split{
        [&layer, &comm](const torch::Tensor& x) { return shared_linear(x, layer.weight, layer.bias, comm); }});
  }
  return std::make_shared<nn::Split>(
      nn::Split{[&layer, enter = shared_input(fitting)](const torch::Tensor& x) { return layer.plain(enter(x)); }});
}

MadeSplit column(torch::nn::Module& module, const Fitting& fitting) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  return split_outputs(layer, fitting, {0, 1, sizes_for(fitting, layer.weight.size(0), "outputs")});
}

// No sum of the input's gradients by itself: it is one with returning them to the ranks that have the samples.
MadeSplit batch_column(torch::nn::Module& module, const Fitting& fitting) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  if (!fitting.placement.whole()) refuse(fitting, "the layers before it must not be split");
  const Cut cut{0, 1, sizes_for(fitting, layer.weight.size(0), "outputs")};
  fitting.cut(layer.weight, cut);
  if (layer.bias.defined()) fitting.cut(layer.bias, cut);
  fitting.batch_gathered();
  return std::make_shared<nn::Split>(nn::Split{[&layer, &comm = fitting.comm](const torch::Tensor& x) {
    return layer.plain(gather_batch(x, batch_sizes(x.size(0), comm), comm, Returned::addends));
  }});
}

MadeSplit heads(torch::nn::Module& module, const Fitting& fitting) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  if (layer.heads() == 0) refuse(fitting, "the layer has not said which outputs are heads, by set_heads()");
  std::int64_t all = layer.groups() * layer.heads(), outputs = layer.weight.size(0);
  if (outputs % all != 0) {
    refuse(fitting, std::to_string(outputs) + " outputs are not " + std::to_string(all) + " equal heads");
  }
  auto sizes = sizes_for(fitting, layer.heads(), "heads");
  for (auto& size : sizes) size *= outputs / all;
  return split_outputs(layer, fitting, {0, layer.groups(), sizes});
}

MadeSplit row(torch::nn::Module& module, const Fitting& fitting) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  auto [enter, sizes] = part_input(fitting, static_cast<std::int64_t>(fitting.shape.size()) - 1);
  fitting.cut(layer.weight, {1, 1, sizes});
  return std::make_shared<nn::Split>(nn::Split{[&layer, enter = enter, &comm = fitting.comm](const torch::Tensor& x) {
    auto y = sum_out(torch::linear(enter(x), layer.weight), comm);
    return layer.bias.defined() ? y.add_(layer.bias) : y;
  }});
}

MadeSplit vocabulary(torch::nn::Module& module, const Fitting& fitting) {
  auto& layer = dynamic_cast<nn::EmbeddingImpl&>(module);
  const auto& options = layer.options;
  if (options.padding_idx() || options.max_norm() || options.scale_grad_by_freq() || options.sparse()) {
    refuse(fitting, "an embedding with padding_idx, max_norm, scale_grad_by_freq or sparse is not split");
  }
  const Cut cut{0, 1, sizes_for(fitting, layer.weight.size(0), "entries")};
  fitting.cut(layer.weight, cut);
  const auto begin = cut.begin(fitting.comm.rank()), size = cut.sizes[fitting.comm.rank()];
  return std::make_shared<nn::Split>(nn::Split{[&layer, begin, size, &comm = fitting.comm](const torch::Tensor& x) {
    auto own = x - begin;
    auto elsewhere = (own < 0).logical_or_(own >= size);
    auto found = torch::embedding(layer.weight, own.masked_fill_(elsewhere, 0));
    return sum_out(found.masked_fill(elsewhere.unsqueeze(-1), 0), comm);
  }});
}

constexpr Kind kLinear[] = {{"column", column}, {"row", row}, {"heads", heads}, {"batch-column", batch_column}};
constexpr Kind kEmbedding[] = {{"vocabulary", vocabulary}};

}  // namespace

std::span<const Kind> linear_kinds() { return kLinear; }
std::span<const Kind> embedding_kinds() { return kEmbedding; }

}  // namespace trireme::parallel
