// Any way to synchronize in a loop of one's own. Run it alone, or with
//   trireme run -n 4 -- ./strategies local-sgd:H=8 int8
#include <torch/torch.h>
#include <trireme/torch.h>

#include <cstdio>

// This rank's share of step `step`'s batch: points in a square, and on which side of a circle they lie.
static std::pair<torch::Tensor, torch::Tensor> batch(int step, int rank, int ranks) {
  torch::manual_seed(1 + step * ranks + rank);
  const auto x = torch::rand({64 / ranks, 2}) * 2 - 1;
  return {x, x.pow(2).sum(1).gt(0.5).to(torch::kInt64)};
}

int main(int argc, char** argv) try {
  auto world = trireme::init();  // one rank if nothing launched us
  torch::set_num_threads(1);
  torch::nn::Sequential model(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Linear(64, 2));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  constexpr int kSteps = 300;
  auto sync = trireme::synchronize(model, optimizer, world,
                                   {.strategy = argc > 1 ? argv[1] : "local-sgd:H=8",
                                    .compress = argc > 2 ? argv[2] : "none",
                                    .total_steps = kSteps});
  for (int step = 0; step < kSteps; ++step) {
    const auto [x, y] = batch(step, world.rank(), world.size());
    torch::cross_entropy_loss(model->forward(x), y).backward();
    sync.step();  // in place of optimizer.step(); drops the gradients
  }
  sync.finish();  // the model is now the strategy's result, on every rank

  if (world.rank() == 0) {
    const auto [x, y] = batch(kSteps, 0, 1);
    const double right = model->forward(x).argmax(1).eq(y).to(torch::kFloat32).mean().item<double>();
    std::printf("%s on %d ranks: %.0f %% right, %.1f KB sent\n", sync.describe().c_str(), world.size(), 100 * right,
                1e-3 * static_cast<double>(sync.report().bytes_sent));
  }
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_code();
}
