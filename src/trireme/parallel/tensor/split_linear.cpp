// Linear layers and embeddings in parts. y = x·Wᵀ + b:
//   column  the outputs are split: each rank has rows of W and of b. x whole, y in parts.
//   heads   the same for the outputs of attention, whole heads to each rank in each group (query, key, value).
//   batch-column  the same, of the samples of all ranks, which are gathered on the way in (see repartition.h).
//   row     the inputs are split: each rank has columns of W. x in parts, the addends of y are summed, then b added.
//   vocabulary  each rank has rows of the table; it looks up its own, and the rest is zeros that the sum fills.
#include "trireme/grad/spare_core.h"
#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/repartition.h"
#include "trireme/parallel/tensor/shared_linear.h"
#include "trireme/parallel/tensor/split_request.h"

namespace trireme::parallel {
namespace {

MadeSplit split_outputs(nn::LinearImpl& layer, const SplitRequest& request, const Cut& cut) {
  request.cut(layer.weight, cut);
  if (layer.bias.defined()) request.cut(layer.bias, cut);
  auto& comm = request.comm;
  const bool hidden = request.placement.whole() && grad::turn_for(comm, 0) == sync::Turn::background;
  if (hidden) {
    return std::make_shared<nn::Split>(nn::Split{
        [&layer, &comm](const torch::Tensor& x) { return shared_linear(x, layer.weight, layer.bias, comm); }});
  }
  return std::make_shared<nn::Split>(
      nn::Split{[&layer, enter = shared_input(request)](const torch::Tensor& x) { return layer.plain(enter(x)); }});
}

MadeSplit column(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  return split_outputs(layer, request, {0, 1, sizes_for(request, layer.weight.size(0), "outputs")});
}

// No sum of the input's gradients by itself: it is one with returning them to the ranks that have the samples.
MadeSplit batch_column(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  if (!request.placement.whole()) refuse(request, "the layers before it must not be split");
  const Cut cut{0, 1, sizes_for(request, layer.weight.size(0), "outputs")};
  request.cut(layer.weight, cut);
  if (layer.bias.defined()) request.cut(layer.bias, cut);
  request.batch_gathered();
  return std::make_shared<nn::Split>(nn::Split{[&layer, &comm = request.comm](const torch::Tensor& x) {
    return layer.plain(gather_batch(x, batch_sizes(x.size(0), comm), comm, Returned::addends));
  }});
}

MadeSplit heads(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  if (layer.heads() == 0) refuse(request, "the layer has not said which outputs are heads, by set_heads()");
  std::int64_t all = layer.groups() * layer.heads(), outputs = layer.weight.size(0);
  if (outputs % all != 0) {
    refuse(request, std::to_string(outputs) + " outputs are not " + std::to_string(all) + " equal heads");
  }
  auto sizes = sizes_for(request, layer.heads(), "heads");
  for (auto& size : sizes) size *= outputs / all;
  return split_outputs(layer, request, {0, layer.groups(), sizes});
}

MadeSplit row(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::LinearImpl&>(module);
  auto [enter, sizes] = part_input(request, static_cast<std::int64_t>(request.shape.size()) - 1);
  request.cut(layer.weight, {1, 1, sizes});
  return std::make_shared<nn::Split>(nn::Split{[&layer, enter = enter, &comm = request.comm](const torch::Tensor& x) {
    auto y = sum_out(torch::linear(enter(x), layer.weight), comm);
    return layer.bias.defined() ? y.add_(layer.bias) : y;
  }});
}

MadeSplit vocabulary(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::EmbeddingImpl&>(module);
  const auto& options = layer.options;
  if (options.padding_idx() || options.max_norm() || options.scale_grad_by_freq() || options.sparse()) {
    refuse(request, "an embedding with padding_idx, max_norm, scale_grad_by_freq or sparse is not split");
  }
  const Cut cut{0, 1, sizes_for(request, layer.weight.size(0), "entries")};
  request.cut(layer.weight, cut);
  const auto begin = cut.begin(request.comm.rank()), size = cut.sizes[request.comm.rank()];
  return std::make_shared<nn::Split>(nn::Split{[&layer, begin, size, &comm = request.comm](const torch::Tensor& x) {
    auto own = x - begin;
    auto elsewhere = (own < 0).logical_or_(own >= size);
    auto found = torch::embedding(layer.weight, own.masked_fill_(elsewhere, 0));
    return sum_out(found.masked_fill(elsewhere.unsqueeze(-1), 0), comm);
  }});
}

constexpr SplitKind kLinear[] = {{"column", column}, {"row", row}, {"heads", heads}, {"batch-column", batch_column}};
constexpr SplitKind kEmbedding[] = {{"vocabulary", vocabulary}};

}  // namespace

std::span<const SplitKind> linear_kinds() { return kLinear; }
std::span<const SplitKind> embedding_kinds() { return kEmbedding; }

}  // namespace trireme::parallel
