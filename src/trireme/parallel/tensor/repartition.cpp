#include "trireme/parallel/tensor/repartition.h"

#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/split_request.h"
#include "trireme/parallel/tensor/tensor_collectives.h"

namespace trireme::parallel {

std::vector<std::int64_t> batch_sizes(std::int64_t own, Communicator& comm) {
  return all_gathered(std::vector<std::int64_t>{own}, comm);
}

torch::Tensor gather_batch(const torch::Tensor& own, const std::vector<std::int64_t>& sizes, Communicator& comm,
                           Returned returned) {
  if (!own.is_floating_point()) return all_gathered(own, 0, sizes, comm);
  return returned == Returned::equal ? gather(own, 0, sizes, comm) : gather_in(own, 0, sizes, comm);
}

namespace {

MadeSplit flatten_batch(torch::nn::Module& module, const SplitRequest& request) {
  auto& layer = dynamic_cast<nn::FlattenImpl&>(module);
  if (!request.placement.whole()) refuse(request, "the layers before it must not be split");
  request.batch_gathered();
  return std::make_shared<nn::Split>(nn::Split{[&layer, &comm = request.comm](const torch::Tensor& x) {
    return gather_batch(layer.plain(x), batch_sizes(x.size(0), comm), comm);
  }});
}

constexpr SplitKind kFlatten[] = {{"batch", flatten_batch}};

}  // namespace

std::span<const SplitKind> flatten_kinds() { return kFlatten; }

}  // namespace trireme::parallel
