#include "trireme/report/profile/gradient_noise.h"

namespace trireme::train {
namespace {

double square_of(const std::vector<torch::Tensor>& tensors) {
  double sum = 0;
  for (const auto& tensor : tensors) {
    if (tensor.defined()) sum += tensor.to(torch::kFloat64).square().sum().item<double>();
  }
  return sum;
}

}  // namespace

void NoiseEstimate::add(double small, double small_square, double large, double large_square, double loss) {
  batch_ = large;
  sums_[0] += (large * large_square - small * small_square) / (large - small);
  sums_[1] += (small_square - large_square) / (1 / small - 1 / large);
  sums_[2] += loss;
  sums_[3] += 1;
}

cluster::NoiseProfile NoiseEstimate::result() const {
  if (sums_[3] == 0) return {};
  return {.batch = batch_,
          .gradient_square = sums_[0] / sums_[3],
          .trace = sums_[1] / sums_[3],
          .loss = sums_[2] / sums_[3],
          .steps = sums_[3]};
}

PieceNorms norms_of(const std::vector<torch::Tensor>& parameters, int pieces,
                    const std::function<double(int piece)>& backward) {
  PieceNorms norms;
  std::vector<torch::Tensor> mean(parameters.size());
  for (int piece = 0; piece < pieces; ++piece) {
    for (const auto& parameter : parameters) parameter.mutable_grad() = torch::Tensor();
    norms.loss += backward(piece) / pieces;
    torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> gradients;
    for (const auto& parameter : parameters) gradients.push_back(parameter.grad());
    norms.small_square += square_of(gradients) / pieces;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      if (!gradients[k].defined()) continue;
      const auto share = gradients[k] / pieces;
      mean[k] = mean[k].defined() ? mean[k] + share : share;
    }
  }
  norms.large_square = square_of(mean);
  for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k].mutable_grad() = mean[k];
  return norms;
}

}  // namespace trireme::train
