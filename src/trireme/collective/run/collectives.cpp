// The typed front of the collectives: checks the arguments and says what to run.
#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/collective/run/executor.h"

namespace trireme {
namespace {

Request request_for(Collective what, ConstView in, View out, std::size_t count, Op op = Op::sum, int root = 0) {
  return {
      .what = what, .dtype = in.dtype, .op = op, .root = root, .count = count, .input = in.data, .output = out.data};
}

void check_root(Collective what, int root, int ranks) {
  if (root < 0 || root >= ranks) {
    throw ConfigError(fmt::format("{}: root {} is not a rank of this group of {}", name(what), root, ranks));
  }
}

// `larger` must hold `times` as many elements as `smaller`, of the same type.
void check_sizes(Collective what, const ConstView& smaller, const ConstView& larger, std::size_t times) {
  if (smaller.dtype != larger.dtype) {
    throw ConfigError(fmt::format("{}: input and output differ in type, {} and {}", name(what), name(smaller.dtype),
                                  name(larger.dtype)));
  }
  if (larger.count != smaller.count * times) {
    throw ConfigError(fmt::format("{}: one buffer has {} elements, so the other must have {}, not {}", name(what),
                                  smaller.count, smaller.count * times, larger.count));
  }
}

void check_op(Collective what, DType type, Op op) {
  if (!defined(type, op)) {
    throw ConfigError(fmt::format("{}: operator {} has no meaning on {}", name(what), name(op), name(type)));
  }
}

}  // namespace

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::all_reduce(ConstView in, View out, Op op) {
  check_sizes(Collective::all_reduce, in, out, 1);
  check_op(Collective::all_reduce, in.dtype, op);
  return self().issue(request_for(Collective::all_reduce, in, out, in.count, op));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::reduce(ConstView in, View out, Op op, int root) {
  check_root(Collective::reduce, root, self().size());
  check_op(Collective::reduce, in.dtype, op);
  if (self().rank() == root) check_sizes(Collective::reduce, in, out, 1);
  return self().issue(request_for(Collective::reduce, in, out, in.count, op, root));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::broadcast(View data, int root) {
  check_root(Collective::broadcast, root, self().size());
  return self().issue(request_for(Collective::broadcast, data, data, data.count, Op::sum, root));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::scatter(ConstView in, View out, int root) {
  check_root(Collective::scatter, root, self().size());
  if (self().rank() == root) check_sizes(Collective::scatter, out, in, self().size());
  in.dtype = out.dtype;
  return self().issue(request_for(Collective::scatter, in, out, out.count, Op::sum, root));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::gather(ConstView in, View out, int root) {
  check_root(Collective::gather, root, self().size());
  if (self().rank() == root) check_sizes(Collective::gather, in, out, self().size());
  return self().issue(request_for(Collective::gather, in, out, in.count, Op::sum, root));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::all_gather(ConstView in, View out) {
  check_sizes(Collective::all_gather, in, out, self().size());
  return self().issue(request_for(Collective::all_gather, in, out, in.count));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::reduce_scatter(ConstView in, View out, Op op) {
  check_sizes(Collective::reduce_scatter, out, in, self().size());
  check_op(Collective::reduce_scatter, in.dtype, op);
  return self().issue(request_for(Collective::reduce_scatter, in, out, out.count, op));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::all_to_all(ConstView in, View out) {
  check_sizes(Collective::all_to_all, in, out, 1);
  const auto ranks = static_cast<std::size_t>(self().size());
  if (in.count % ranks != 0) {
    throw ConfigError(fmt::format("all-to-all: {} elements do not divide into {} blocks", in.count, ranks));
  }
  if (in.data == out.data && in.count > 0)
    throw ConfigError("all-to-all: input and output must not be the same memory");
  return self().issue(request_for(Collective::all_to_all, in, out, in.count / ranks));
}

template <typename Derived, typename Result>
Result Collectives<Derived, Result>::barrier() {
  return self().issue(request_for(Collective::barrier, {}, {}, 0));
}

template class Collectives<Communicator, void>;
template class Collectives<Communicator::Async, Work>;

}  // namespace trireme
