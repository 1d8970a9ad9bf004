#include "trireme/parallel/tensor/split_request.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/nn/dropout.h"
#include "trireme/nn/layers.h"
#include "trireme/nn/locally_connected.h"
#include "trireme/parallel/tensor/maps.h"

namespace trireme::parallel {
namespace {

struct Family {
  std::string_view name;
  bool (*is)(const torch::nn::Module&);
  std::span<const SplitKind> (*kinds)();
};

template <class Layer>
bool is(const torch::nn::Module& module) {
  return dynamic_cast<const Layer*>(&module) != nullptr;
}

std::span<const SplitKind> no_kinds() { return {}; }

constexpr Family kFamilies[] = {
    {"Linear", is<nn::LinearImpl>, linear_kinds},
    {"Embedding", is<nn::EmbeddingImpl>, embedding_kinds},
    {"Conv2d", is<nn::Conv2dImpl>, convolution_kinds},
    {"BatchNorm2d", is<nn::BatchNorm2dImpl>, normalization_kinds},
    {"MaxPool2d", is<nn::MaxPool2dImpl>, pooling_kinds},
    {"LocallyConnected2d", is<nn::LocallyConnected2dImpl>, locally_connected_kinds},
    {"Flatten", is<nn::FlattenImpl>, flatten_kinds},
    {"Dropout", is<nn::DropoutImpl>, no_kinds},
};

const Family* family_of(const torch::nn::Module& module) {
  for (const auto& family : kFamilies) {
    if (family.is(module)) return &family;
  }
  return nullptr;
}

// What a part along a dimension is called, and the kind that takes it as it is.
std::string_view dimension_name(std::int64_t dim) { return dim == 1 ? "channels" : dim == 2 ? "rows" : "columns"; }

}  // namespace

std::span<const SplitKind> kinds_of(const torch::nn::Module& layer) {
  const auto* family = family_of(layer);
  return family ? family->kinds() : no_kinds();
}

std::string kinds_text(const torch::nn::Module& layer) {
  std::string text;
  for (const auto& kind : kinds_of(layer)) text += fmt::format("{}{}", text.empty() ? "" : ", ", kind.name);
  return text;
}

std::string type_of(const torch::nn::Module& layer) {
  const auto* family = family_of(layer);
  return family ? std::string(family->name) : layer.name();
}

void refuse(const SplitRequest& request, const std::string& why) {
  throw ConfigError(fmt::format("tensor rule {}: {}", request.rule, why));
}

std::vector<std::int64_t> sizes_for(const SplitRequest& request, std::int64_t count, std::string_view what) {
  if (count < request.comm.size()) {
    refuse(request,
           fmt::format("{} {} cannot be split over {} workers; at most {}", count, what, request.comm.size(), count));
  }
  return even_sizes(count, request.comm.size());
}

OnTensor whole_input(const SplitRequest& request) {
  if (request.placement.whole()) return [](const torch::Tensor& x) { return x; };
  return [at = request.placement, &comm = request.comm](const torch::Tensor& x) {
    return gather(x, at.dim, at.sizes, comm);
  };
}

OnTensor shared_input(const SplitRequest& request) {
  if (request.placement.whole()) {
    return [&comm = request.comm](const torch::Tensor& x) { return x.is_floating_point() ? copy_in(x, comm) : x; };
  }
  return [at = request.placement, &comm = request.comm](const torch::Tensor& x) {
    return gather_in(x, at.dim, at.sizes, comm);
  };
}

PartInput part_input(const SplitRequest& request, std::int64_t dim) {
  if (request.placement.dim == dim) return {[](const torch::Tensor& x) { return x; }, request.placement.sizes};
  auto sizes = sizes_for(request, request.shape[dim], "inputs");
  return {[enter = whole_input(request), dim, sizes, &comm = request.comm](const torch::Tensor& x) {
            return take(enter(x), dim, sizes, comm);
          },
          sizes};
}

MadeSplit make_unsplit(torch::nn::Module& module, const SplitRequest& request, const std::string& from) {
  auto made = std::make_shared<nn::Split>();
  auto& layer = dynamic_cast<nn::Layer&>(module);
  if (is<nn::BatchNorm2dImpl>(module)) {
    const auto& at = request.placement;
    throw ConfigError(fmt::format("tensor rules: {} gets {} of its {} {} from {}: add {}={}", request.rule,
                                  at.sizes[request.comm.rank()], request.shape[at.dim], dimension_name(at.dim), from,
                                  request.rule, at.dim == 1 ? "channels" : "space"));
  }
  if ((is<nn::FlattenImpl>(module) || is<nn::MaxPool2dImpl>(module)) && request.placement.dim == 1) return nullptr;
  made->forward = [&layer, enter = whole_input(request)](const torch::Tensor& x) { return layer.plain(enter(x)); };
  return made;
}

}  // namespace trireme::parallel
