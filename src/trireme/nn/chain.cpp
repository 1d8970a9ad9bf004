#include "trireme/nn/chain.h"

#include <algorithm>
#include <map>
#include <set>

#include "trireme/nn/layers.h"
#include "trireme/operators/epilogue.h"
#include "trireme/operators/pooling.h"

namespace trireme::nn {
namespace {

// A node of the tree that module_of() builds.
class Node : public torch::nn::Module {
 public:
  std::shared_ptr<Node> child(const std::string& name) {
    auto& found = children_of_node_[name];
    if (!found) found = register_module(name, std::make_shared<Node>());
    return found;
  }
  void parameter(const std::string& name, const torch::Tensor& tensor) {
    register_parameter(name, tensor, tensor.requires_grad());
  }
  void buffer(const std::string& name, const torch::Tensor& tensor) { register_buffer(name, tensor); }

 private:
  std::map<std::string, std::shared_ptr<Node>> children_of_node_;
};

std::pair<std::shared_ptr<Node>, std::string> place_of(std::shared_ptr<Node> node, const std::string& path) {
  std::size_t begin = 0;
  for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    node = node->child(path.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return {node, path.substr(begin)};
}

template <typename Tensors>
void note(std::set<const void*>& into, const Tensors& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.defined()) into.insert(tensor.unsafeGetTensorImpl());
  }
}

template <typename Dict>
Named those_in(const Dict& all, const std::set<const void*>& wanted) {
  Named found;
  for (const auto& item : all) {
    if (item.value().defined() && wanted.contains(item.value().unsafeGetTensorImpl())) {
      found.emplace_back(item.key(), item.value());
    }
  }
  return found;
}

bool has_matrix(const torch::nn::Module& module) {
  auto parameters = module.parameters();
  return std::any_of(parameters.begin(), parameters.end(), [](const auto& tensor) { return tensor.dim() > 1; });
}

bool is_relu(const torch::nn::Module& module) { return module.as<torch::nn::ReLUImpl>() != nullptr; }

// Whose output is new, so that what follows may change it.
bool has_new_output(const torch::nn::Module& module) {
  return module.as<torch::nn::Conv2dImpl>() || module.as<torch::nn::LinearImpl>() || module.as<BatchNorm2dImpl>() ||
         module.as<torch::nn::BatchNorm2dImpl>();
}

// Null where it is not one of equal sides that LibTorch or we can do after ReLU.
const torch::nn::MaxPool2dOptions* plain_pool(const torch::nn::Module& module) {
  const auto* ours = module.as<MaxPool2dImpl>();
  const auto* pool = module.as<torch::nn::MaxPool2dImpl>();
  if (!pool || (ours && ours->split()) || pool->options.ceil_mode()) return nullptr;
  const auto same = [](const torch::ExpandingArray<2>& side) { return (*side)[0] == (*side)[1]; };
  const auto& options = pool->options;
  if (!same(options.kernel_size()) || !same(options.stride()) || !same(options.padding())) return nullptr;
  return (*options.dilation())[0] == 1 && (*options.dilation())[1] == 1 ? &options : nullptr;
}

// Module k, together with the ReLU and the pooling behind it where those can be one pass with it; returns the next.
std::size_t compute(torch::nn::SequentialImpl& sequential, std::size_t k, std::size_t last, torch::Tensor& x) {
  const auto layer = [&] { return (sequential.begin() + static_cast<std::ptrdiff_t>(k))->forward(x); };
  if (k + 1 >= last || !is_relu(*sequential.ptr(k + 1)) || !has_new_output(*sequential.ptr(k))) {
    x = layer();
    return k + 1;
  }
  if (const auto* pool = k + 2 < last ? plain_pool(*sequential.ptr(k + 2)) : nullptr) {
    x = operators::relu_max_pool(layer(), (*pool->kernel_size())[0], (*pool->stride())[0], (*pool->padding())[0]);
    return k + 3;
  }
  x = operators::with_epilogue(layer, {.relu = true});
  return k + 2;
}

// Modules first … last − 1.
Piece piece_of(torch::nn::Sequential sequential, std::size_t first, std::size_t last, const std::string& prefix) {
  Piece piece{prefix + sequential->named_children()[first].key(), {}, [=](Values values) mutable {
                for (std::size_t k = first; k < last;) k = compute(*sequential, k, last, values[0]);
                return values;
              }};
  for (std::size_t k = first; k < last; ++k) piece.modules.push_back(sequential->ptr(k));
  return piece;
}

}  // namespace

Chain chain_of(torch::nn::Sequential sequential) {
  Chain chain;
  for (std::size_t k = 0; k < sequential->size(); ++k) chain.push_back(piece_of(sequential, k, k + 1, ""));
  return chain;
}

Chain layers_of(torch::nn::Sequential sequential, const std::string& prefix) {
  Chain chain;
  const std::size_t size = sequential->size();
  for (std::size_t first = 0, last; first < size; first = last) {
    for (last = first + 1; last < size && !has_matrix(*sequential->ptr(last));) ++last;
    chain.push_back(piece_of(sequential, first, last, prefix));
  }
  return chain;
}

void begin_with(Piece& piece, std::function<torch::Tensor(const torch::Tensor&)> first) {
  piece.forward = [first = std::move(first), rest = std::move(piece.forward)](Values values) {
    values[0] = first(values[0]);
    return rest(std::move(values));
  };
}

Values run(const Chain& chain, Values values, std::size_t first, std::size_t last) {
  for (std::size_t k = first; k < last; ++k) values = chain[k].forward(std::move(values));
  return values;
}

torch::Tensor run(const Chain& chain, const torch::Tensor& input) {
  return run(chain, Values{input}, 0, chain.size()).at(0);
}

Named parameters_of(const torch::nn::Module& model, const Chain& chain, std::size_t first, std::size_t last) {
  std::set<const void*> wanted;
  for (std::size_t k = first; k < last; ++k) {
    for (const auto& module : chain[k].modules) note(wanted, module->parameters());
    note(wanted, chain[k].parameters);
  }
  return those_in(model.named_parameters(), wanted);
}

Named buffers_of(const torch::nn::Module& model, const Chain& chain, std::size_t first, std::size_t last) {
  std::set<const void*> wanted;
  for (std::size_t k = first; k < last; ++k) {
    for (const auto& module : chain[k].modules) note(wanted, module->buffers());
  }
  return those_in(model.named_buffers(), wanted);
}

std::shared_ptr<torch::nn::Module> module_of(const Named& parameters, const Named& buffers) {
  auto root = std::make_shared<Node>();
  for (const auto& [path, tensor] : parameters) {
    auto [node, name] = place_of(root, path);
    node->parameter(name, tensor);
  }
  for (const auto& [path, tensor] : buffers) {
    auto [node, name] = place_of(root, path);
    node->buffer(name, tensor);
  }
  return root;
}

}  // namespace trireme::nn
