#include "trireme/parallel/tensor/maps.h"
#include "trireme/parallel/tensor/tensor_collectives.h"

#include <functional>

namespace trireme::parallel {
namespace {

using torch::Tensor;
using MapFunction = std::function<Tensor(const Tensor&)>;
using Sizes = std::vector<std::int64_t>;

struct Map : torch::CustomClassHolder {
  MapFunction forward, backward;
};

class Mapped : public torch::autograd::Function<Mapped> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, c10::intrusive_ptr<Map> map) {
    auto result = map->forward(x);
    context->saved_data["map"] = torch::IValue::make_capsule(std::move(map));
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    auto map = context->saved_data["map"].toCapsule();
    return {static_cast<Map&>(*map).backward(gradients[0]), Tensor()};
  }
};

Tensor mapped(const Tensor& x, MapFunction forward, MapFunction backward) {
  auto map = c10::make_intrusive<Map>();
  map->forward = std::move(forward);
  map->backward = std::move(backward);
  return Mapped::apply(x, map);
}

MapFunction same() {
  return [](const Tensor& x) { return x; };
}
MapFunction summed(Communicator& comm) {
  return [&comm](const Tensor& x) { return all_reduced(x, comm); };
}
MapFunction gathered(std::int64_t dim, const Sizes& sizes, Communicator& comm) {
  return [dim, sizes, &comm](const Tensor& x) { return all_gathered(x, dim, sizes, comm); };
}
MapFunction own(std::int64_t dim, const Sizes& sizes, Communicator& comm) {
  auto range = ranges_of(sizes)[comm.rank()];
  return [dim, range](const Tensor& x) { return x.narrow(dim, range.begin, range.end - range.begin).contiguous(); };
}

}  // namespace

Tensor copy_in(const Tensor& whole, Communicator& comm) { return mapped(whole, same(), summed(comm)); }

Tensor sum_out(const Tensor& addend, Communicator& comm) { return mapped(addend, summed(comm), same()); }

Tensor sum_both(const Tensor& addend, Communicator& comm) { return mapped(addend, summed(comm), summed(comm)); }

Tensor gather(const Tensor& part, std::int64_t dim, const Sizes& sizes, Communicator& comm) {
  return mapped(part, gathered(dim, sizes, comm), own(dim, sizes, comm));
}

Tensor gather_in(const Tensor& part, std::int64_t dim, const Sizes& sizes, Communicator& comm) {
  return mapped(part, gathered(dim, sizes, comm),
                [dim, sizes, &comm](const Tensor& x) { return reduce_scattered(x, dim, sizes, comm); });
}

Tensor take(const Tensor& whole, std::int64_t dim, const Sizes& sizes, Communicator& comm) {
  return mapped(whole, own(dim, sizes, comm), gathered(dim, sizes, comm));
}

Tensor halo(const Tensor& part, std::int64_t dim, const std::vector<Range>& have, const std::vector<Range>& need,
            Communicator& comm) {
  return mapped(
      part, [dim, have, need, &comm](const Tensor& x) { return moved(x, dim, have, need, comm); },
      [dim, have, need, &comm](const Tensor& x) { return moved(x, dim, need, have, comm); });
}

}  // namespace trireme::parallel
