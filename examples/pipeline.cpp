// A model cut into stages, fed micro-batch by micro-batch. Run it alone, or with
//   trireme run -n 2 -- ./pipeline
#include <torch/torch.h>
#include <trireme/torch.h>

#include <cstdio>

int main() try {
  auto world = trireme::init();
  torch::set_num_threads(1);
  torch::manual_seed(1);  // the same model on every rank; each keeps its stage
  torch::nn::Sequential model(torch::nn::Linear(16, 64), torch::nn::ReLU(), torch::nn::Linear(64, 64),
                              torch::nn::ReLU(), torch::nn::Linear(64, 4));
  trireme::Mesh mesh(world, {.data = 1, .pipe = world.size()});  // data = 2 makes two such pipelines
  auto net = trireme::pipeline(model, mesh, {.schedule = "1f1b", .micro_batches = 4});
  auto replicas = trireme::data_parallel(net.part(), mesh.data());
  torch::optim::Adam optimizer(net.part().parameters(), 0.01);

  double loss = 0;
  for (int step = 0; step < 100; ++step) {
    torch::manual_seed(step);  // every worker of a replica is given the same batch
    const auto x = torch::randn({32, 16});
    const auto y = x.slice(1, 0, 4).argmax(1);
    loss = 0;
    optimizer.zero_grad();
    net.step({.input = x,
              .target = y,
              .loss =
                  [&](const torch::Tensor& scores, const torch::Tensor& target) {  // at the last stage
                    const auto mean = torch::cross_entropy_loss(scores, target) / 4;
                    loss += mean.item<double>();
                    return mean;
                  },
              .replicas = &replicas});
    optimizer.step();
  }
  if (net.last()) std::printf("%d stages: loss %.3f in the last step\n", world.size(), loss);
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
