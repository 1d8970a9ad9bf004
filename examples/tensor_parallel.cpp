// Layers whose weights are split over workers: the first by its outputs, the second by its inputs, so that the two cost
// one exchange each way. Run it alone, or with
//   trireme run -n 2 -- ./tensor_parallel
#include <torch/torch.h>
#include <trireme/torch.h>

#include <cstdio>

struct Net : torch::nn::Module {
  trireme::nn::Linear fc1{register_module("fc1", trireme::nn::Linear(16, 64))};
  trireme::nn::Linear fc2{register_module("fc2", trireme::nn::Linear(64, 4))};
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};

int main() try {
  auto world = trireme::init();
  torch::set_num_threads(1);
  torch::manual_seed(1);  // the same model on every rank; each keeps its part of the layers
  Net model;
  trireme::Mesh mesh(world, {.tensor = world.size()});
  auto split = trireme::tensor_parallel(model, mesh, "fc1=column,fc2=row", torch::randn({2, 16}));
  torch::optim::Adam optimizer(model.parameters(), 0.01);  // after the split: it steps this rank's parts

  double last = 0;
  for (int step = 0; step < 100; ++step) {
    torch::manual_seed(step);  // every worker is given the same batch
    const auto x = torch::randn({32, 16});
    const auto y = x.slice(1, 0, 4).argmax(1);
    optimizer.zero_grad();
    auto loss = split.loss(model.forward(x), y);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
  }
  if (world.rank() == 0) {
    std::printf("fc1 is %ld of 64 rows on each of %d ranks: loss %.3f in the last step\n",
                static_cast<long>(model.fc1->weight.size(0)), world.size(), last);
  }
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
