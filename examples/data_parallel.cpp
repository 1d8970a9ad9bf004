// A plain LibTorch program, and the lines that make it train on many workers (marked ←). Run it alone, or with
//   trireme run -n 4 -- ./data_parallel
#include <torch/torch.h>
#include <trireme/torch.h>

#include <cstdio>

struct Spiral : torch::data::datasets::Dataset<Spiral> {  // two arms, to be told apart
  torch::data::Example<> get(std::size_t i) override {
    float turn = static_cast<float>(i / 2) * 0.02f, side = i % 2 ? 1.f : -1.f;
    auto point = torch::tensor({side * turn * std::cos(turn), side * turn * std::sin(turn)});
    return {point, torch::tensor(static_cast<std::int64_t>(i % 2))};
  }
  torch::optional<std::size_t> size() const override { return 512; }
};

int main() try {
  auto world = trireme::init();  // ← one rank if nothing launched us
  torch::set_num_threads(1);
  torch::manual_seed(world.rank());  // weights differ at first: rank 0's become everyone's

  torch::nn::Sequential model(torch::nn::Linear(2, 64), torch::nn::ReLU(), torch::nn::Linear(64, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 2));
  auto net = trireme::data_parallel(model, world, {.bucket_mb = 25});  // ← owns its hooks; the model stays yours

  trireme::DistributedSampler sampler(512, world.rank(), world.size());  // ← each rank its share
  auto set = Spiral().map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader(std::move(set), sampler, 64 / world.size());

  torch::optim::Adam optimizer(model->parameters(), 0.01);
  double loss_sum = 0;
  for (int epoch = 0; epoch < 30; ++epoch) {
    loss_sum = 0;
    auto uneven = net.join();  // ← ranks may have different numbers of batches
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::cross_entropy_loss(model->forward(batch.data), batch.target);
      loss.backward();  // gradients are the mean over all ranks when this returns
      optimizer.step();
      loss_sum += loss.item<double>();
    }
  }
  if (world.rank() == 0) std::printf("%d ranks: loss %.4f in the last epoch\n", world.size(), loss_sum);
} catch (const trireme::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
