// Parameters, gradients and the optimizer's state in shards: each worker keeps its pieces, and gathers a layer's
// weights while it runs. Run it alone, or with
//   trireme run -n 2 -- ./shard
#include <torch/torch.h>
#include <trireme/torch.h>

#include <cstdio>

int main() try {
  auto world = trireme::init();
  torch::set_num_threads(1);
  torch::nn::Sequential model(torch::nn::Linear(16, 64), torch::nn::ReLU(), torch::nn::Linear(64, 4));
  auto net = trireme::shard(model, world, {.what = trireme::ShardKind::parameters});
  torch::optim::Adam optimizer(net.parameters(), 0.01);  // this worker's pieces

  double loss = 0;
  for (int step = 0; step < 100; ++step) {
    torch::manual_seed(step * world.size() + world.rank());  // each worker its own samples
    const auto x = torch::randn({32 / world.size(), 16});
    const auto y = x.slice(1, 0, 4).argmax(1);
    loss = net.step(x, y, [](const torch::Tensor& scores, const torch::Tensor& target) {
      return torch::cross_entropy_loss(scores, target);
    });
    optimizer.step();
  }
  std::int64_t here = 0;
  for (const auto& piece : net.parameters()) here += piece.numel();
  if (world.rank() == 0) {
    std::printf("%ld of 1,348 parameters on this of %d ranks: loss %.3f in the last step\n", static_cast<long>(here),
                world.size(), loss);
  }
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
