// What the snippets of the documentation leave to the reader's program. Declared only: they are compiled, never run.
#pragma once
#include <torch/torch.h>
#include <trireme/optimize.h>
#include <trireme/parameter_server.h>
#include <trireme/simulate.h>
#include <trireme/torch.h>
#include <trireme/train.h>

#include <iostream>
#include <utility>
#include <vector>

namespace stand_ins {

using namespace trireme;  // NOLINT: pages name the library's parts in short

extern Communicator world, comm, group;
extern torch::nn::Sequential model;
extern torch::optim::SGD optimizer;
extern torch::Tensor loss, weight, input, target, gate, up, down, example;
extern std::vector<std::pair<torch::Tensor, torch::Tensor>> batches;
extern int rank, workers;
extern double accuracy, lr;
extern std::int64_t step;
torch::Tensor loss_of_next_batch();
torch::Tensor loss_of(const torch::Tensor& output, const torch::Tensor& target);
extern std::function<torch::Tensor(torch::Tensor)> forward;
void learn(const torch::Tensor& input, const torch::Tensor& target, std::int64_t of);
std::shared_ptr<Model> make_my_net(const models::Shape& shape, const models::Arguments& arguments);
data::Splits open_my_data(std::string_view name, const data::OpenOptions& options);
extern ps::Client client;
extern std::vector<ps::Tensor> tensors;
extern ps::UpdateSpec update;
extern ps::Consistency consistency;
extern std::vector<float> initial;
extern std::span<float> gradient, weights;
extern Deadline deadline;

}  // namespace stand_ins
