// A TorchScript file as a model: its parameters and buffers are mirrored, under their own names, in a tree of modules
// that hold the very same tensors, so that whatever walks or moves the model reaches those the script computes with.
#include <fmt/format.h>
#include <torch/script.h>

#include <filesystem>
#include <unordered_set>

#include "trireme/base/error.h"
#include "trireme/models/options.h"
#include "trireme/models/zoo.h"

namespace trireme::models {
namespace {

// The line of a LibTorch message that says what went wrong: the last that names an error, or else the first.
std::string reason(const std::exception& error) {
  std::string text = error.what();
  if (auto* c10_error = dynamic_cast<const c10::Error*>(&error)) text = c10_error->what_without_backtrace();
  std::size_t start = text.rfind("Error: ");
  start = start == std::string::npos ? 0 : start + 7;
  return text.substr(start, text.find('\n', start) - start);
}

struct Node : torch::nn::Module {};

class Script : public Model {
 public:
  explicit Script(torch::jit::Module script) : script_(std::move(script)) {
    // A tensor under several names is one parameter: it is registered, and stepped, once.
    std::unordered_set<const void*> seen;
    for (const auto& item : script_.named_parameters()) {
      if (!seen.insert(item.value.unsafeGetTensorImpl()).second) continue;
      auto [module, name] = place(item.name);
      module->register_parameter(name, item.value, item.value.requires_grad());
    }
    for (const auto& item : script_.named_buffers()) {
      if (!seen.insert(item.value.unsafeGetTensorImpl()).second) continue;
      auto [module, name] = place(item.name);
      module->register_buffer(name, item.value);
    }
    train(true);
  }

  torch::Tensor forward(torch::Tensor input) override { return script_.forward({std::move(input)}).toTensor(); }

  void train(bool on = true) override {
    Model::train(on);
    // A frozen script has no such attribute, and nothing that depends on it.
    for (torch::jit::Module part : script_.modules()) {
      if (part.hasattr("training")) part.setattr("training", on);
    }
  }

  std::vector<torch::Tensor> embeddings() override {
    std::vector<torch::Tensor> found;
    for (torch::jit::Module part : script_.modules()) {
      const auto name = part.type()->name();  // with what tells classes of one name apart in the middle
      if (!name || !name->qualifiedName().starts_with("__torch__.torch.nn.modules.sparse.")) continue;
      if (!name->name().starts_with("Embedding")) continue;
      if (part.hasattr("weight")) found.push_back(part.attr("weight").toTensor());
    }
    return found;
  }

  // Runs one sample of zeros in evaluation and leaves everything as it was. Throws ConfigError unless the scores have
  // the shape they must.
  void try_out(const std::string& file, const Shape& shape) {
    torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> before;
    for (const torch::Tensor& buffer : buffers()) before.push_back(buffer.clone());
    std::vector<std::int64_t> size = shape.input, expected{1};
    size.insert(size.begin(), 1);
    if (shape.text) expected.push_back(shape.input.at(0));
    expected.push_back(shape.classes);
    eval();
    std::string sample = fmt::format("{}{}", shape.text ? "text of " : "", shape_text(shape.input));
    torch::IValue scores;
    try {
      scores = script_.forward({torch::zeros(size, shape.text ? torch::kLong : torch::kFloat)});
    } catch (const std::exception& error) {
      throw ConfigError(fmt::format("model {}: fails on a sample of {}: {}", file, sample, reason(error)));
    }
    if (!scores.isTensor()) {
      throw ConfigError(fmt::format("model {}: gives a {}, must give one tensor", file, scores.tagKind()));
    }
    if (scores.toTensor().sizes() != expected) {
      throw ConfigError(fmt::format("model {}: gives {} for one sample of {}, must give {}", file,
                                    shape_text(scores.toTensor().sizes().vec()), sample, shape_text(expected)));
    }
    std::size_t next = 0;
    for (torch::Tensor& buffer : buffers()) buffer.copy_(before[next++]);
    train(true);
  }

 private:
  // The module for "a.b.weight", a.b, made where it is missing; and the last part of the name.
  std::pair<std::shared_ptr<torch::nn::Module>, std::string> place(std::string path) {
    std::shared_ptr<torch::nn::Module> module(std::shared_ptr<torch::nn::Module>(), this);
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
      std::string name = path.substr(0, dot);
      auto children = module->named_children();
      auto* child = children.find(name);
      module = child ? *child : module->register_module(name, std::make_shared<Node>());
      path.erase(0, dot + 1);
    }
    return {module, path};
  }

  torch::jit::Module script_;
};

}  // namespace

Made load_script(const std::string& file, const Shape& shape, const Arguments& arguments) {
  Options(file, arguments).done();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) throw ConfigError(fmt::format("model {}: there is no such file", file));
  if (!std::filesystem::is_regular_file(file, error)) throw ConfigError(fmt::format("model {}: is not a file", file));
  std::shared_ptr<Script> model;
  try {
    model = std::make_shared<Script>(torch::jit::load(file));
  } catch (const std::exception& failure) {
    throw DataError(
        fmt::format("model {}: is not a TorchScript file as torch.jit.save writes it: {}", file, reason(failure)));
  }
  model->try_out(file, shape);
  return model;
}

}  // namespace trireme::models
