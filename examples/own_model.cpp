// A program that is `trireme train`, `compare`, `eval` … with a model, data and an optimizer of its own:
//   ./own_model --workers 2                                   ./own_model --help
//   ./own_model --strategy ps-bsp --optimizer signum --lr 0.01
//   ./own_model compare --vary strategy allreduce local-sgd
#include <torch/torch.h>
#include <trireme/train.h>

// Plain LibTorch. A Sequential can be cut into stages: --mesh pipe=2.
static std::shared_ptr<trireme::Model> two_layers(const trireme::models::Shape& shape,
                                                  const trireme::models::Arguments& arguments) {
  const auto width = arguments.contains("width") ? std::stoll(arguments.at("width")) : 64;
  return trireme::model_of(torch::nn::Sequential(torch::nn::Linear(shape.input[0], width), torch::nn::ReLU(),
                                                 torch::nn::Linear(width, shape.classes)));
}

// Points in a square, and in which ring around its middle they lie.
static trireme::data::Splits rings(std::string_view name, const trireme::data::OpenOptions&) {
  auto draw = [](std::int64_t count, std::uint64_t seed) {
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(seed);
    const auto x = torch::rand({count, 2}, generator) * 2 - 1;
    return trireme::data::of_tensors(x, x.norm(2, 1).mul(2.1).to(torch::kInt64), 3);
  };
  return {.name = std::string(name), .train = draw(4000, 1), .test = draw(500, 2), .labels = {"in", "mid", "out"}};
}

// w ← w − η·sign(m), with m a running mean of gradients.
struct Signum : trireme::train::Optimizer {
  explicit Signum(const trireme::train::NamedTensors& given) : parameters(given) {
    for (const auto& [name, tensor] : given) means.emplace_back(name + ".mean", torch::zeros_like(tensor));
  }
  void step(double lr) override {
    torch::NoGradGuard no_grad;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      auto& [name, parameter] = parameters[k];
      if (!parameter.grad().defined()) continue;
      means[k].second.mul_(0.9).add_(parameter.grad(), 0.1);
      parameter.sub_(means[k].second.sign(), lr);
    }
  }
  trireme::train::NamedTensors state() override { return means; }
  void load(const trireme::train::NamedTensors& state) override {
    for (std::size_t k = 0; k < means.size(); ++k) means[k].second.copy_(state.at(k).second);
  }
  trireme::train::NamedTensors parameters, means;
};

int main(int argc, char** argv) {
  return trireme::train_main(
      argc, argv,
      {.models = {{"two-layers", "a small perceptron", "width=64", two_layers}},
       .data = {{.name = "rings", .what = "points in a square, in three rings", .open = rings}},
       .optimizers = {{"signum", "steps by the sign of the mean gradient",
                       [](const auto& parameters, const auto&) { return std::make_unique<Signum>(parameters); }}}});
}
