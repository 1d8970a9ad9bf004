#include "trireme/parallel/tensor/cross_entropy.h"

#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {
namespace {

using torch::Tensor;

class SplitCrossEntropy : public torch::autograd::Function<SplitCrossEntropy> {
 public:
  // `scores` [N, own], `target` [N] counted from the first own class.
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& scores, const Tensor& target,
                        const Tensor& counted, Communicator* comm, double smoothing, std::int64_t classes) {
    auto most = all_reduced(std::get<0>(scores.max(1)), *comm, Op::max);
    auto powers = torch::exp(scores - most.unsqueeze(1));
    auto elsewhere = (target < 0).logical_or_(target >= scores.size(1));
    auto own = target.masked_fill(elsewhere, 0).unsqueeze(1);
    auto hit = scores.gather(1, own).squeeze(1).masked_fill(elsewhere, 0);
    const double even = smoothing / static_cast<double>(classes);
    const double at_target = 1 - smoothing;
    // What targets give to the scores: all of it to the hit without smoothing.
    auto given = smoothing > 0 ? hit * at_target + scores.sum(1) * even : hit;
    auto sums = all_reduced(torch::stack({powers.sum(1), given}), *comm);
    auto share = counted.to(scores.scalar_type());
    share = share / share.sum();

    powers.div_(sums[0].unsqueeze(1));
    powers.scatter_add_(1, own, (elsewhere.logical_not().to(scores.scalar_type()) * -at_target).unsqueeze(1));
    if (smoothing > 0) powers.sub_(even);
    context->save_for_backward({powers.mul_(share.unsqueeze(1))});
    return ((torch::log(sums[0]) + most - sums[1]) * share).sum();
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {context->get_saved_variables()[0] * gradients[0], Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

std::int64_t sum_of(const std::vector<std::int64_t>& sizes, int ranks) {
  std::int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += sizes[rank];
  return sum;
}

bool is_whole(const Tensor& scores, const std::vector<std::int64_t>& sizes) {
  return sizes.size() < 2 || scores.size(-1) == sum_of(sizes, static_cast<int>(sizes.size()));
}

}  // namespace

Tensor cross_entropy(const Tensor& scores, const Tensor& target, const std::vector<std::int64_t>& sizes,
                     Communicator& comm, double smoothing) {
  auto rows = scores.reshape({-1, scores.size(-1)});
  auto flat = target.flatten();
  if (is_whole(scores, sizes)) {
    return torch::cross_entropy_loss(rows, flat, {}, at::Reduction::Mean, /*ignore_index=*/-100, smoothing);
  }
  return SplitCrossEntropy::apply(rows, flat - sum_of(sizes, comm.rank()), flat >= 0, &comm, smoothing,
                                  sum_of(sizes, comm.size()));
}

std::int64_t correct(const Tensor& scores, const Tensor& target, const std::vector<std::int64_t>& sizes,
                     Communicator& comm) {
  torch::NoGradGuard no_grad;
  auto flat = target.flatten();
  auto rows = scores.detach().reshape({-1, scores.size(-1)});
  auto [best, place] = rows.max(1);
  if (!is_whole(scores, sizes)) {
    place = place + sum_of(sizes, comm.rank());
    auto own = torch::stack({best.to(torch::kFloat64), place.to(torch::kFloat64)}).unsqueeze(0);
    auto all = all_gathered(own, 0, std::vector<std::int64_t>(comm.size(), 1), comm);
    auto winner = std::get<1>(all.select(1, 0).max(0, /*keepdim=*/true));
    place = all.select(1, 1).gather(0, winner).squeeze(0).to(torch::kLong);
  }
  return place.eq(flat).sum().item<std::int64_t>();
}

}  // namespace trireme::parallel
