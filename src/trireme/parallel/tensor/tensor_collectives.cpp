#include "trireme/parallel/tensor/tensor_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "trireme/base/error.h"
#include "trireme/grad/element_type.h"

namespace trireme::parallel {
namespace {

DType checked_type(const torch::Tensor& tensor) {
  if (const auto type = grad::element_type(tensor.scalar_type())) return *type;
  throw ConfigError(fmt::format("tensors of {} cannot be exchanged", torch::toString(tensor.scalar_type())));
}

torch::Tensor on_host(const torch::Tensor& tensor) { return tensor.detach().to(torch::kCPU).contiguous(); }

torch::Tensor like(const torch::Tensor& result, const torch::Tensor& model) { return result.to(model.device()); }

// With zeros behind it along `dim` up to `size`.
torch::Tensor padded(const torch::Tensor& tensor, std::int64_t dim, std::int64_t size) {
  if (tensor.size(dim) == size) return tensor;
  auto shape = tensor.sizes().vec();
  shape[dim] = size;
  auto result = torch::zeros(shape, tensor.options());
  result.narrow(dim, 0, tensor.size(dim)).copy_(tensor);
  return result;
}

std::vector<std::int64_t> in_front(std::int64_t size, const torch::Tensor& tensor) {
  auto shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size);
  return shape;
}

Range common(const Range& a, const Range& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

// A message under way: its memory lives until all are done.
struct Message {
  torch::Tensor memory;
  Range at;  // where it goes; empty for one that is sent
  Work work;
};

void wait_all(std::vector<Message>& messages) {
  std::exception_ptr first;
  for (auto& message : messages) {
    try {
      message.work.wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

View view_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), checked_type(tensor)};
}

void all_reduce_in_place(torch::Tensor tensor, Communicator& comm, Op op) {
  auto host = on_host(tensor);
  comm.all_reduce(view_of(host), op);
  if (host.data_ptr() != tensor.data_ptr()) tensor.copy_(host);
}

torch::Tensor all_reduced(const torch::Tensor& mine, Communicator& comm, Op op) {
  auto in = on_host(mine), out = torch::empty_like(in);
  comm.all_reduce(view_of(in), view_of(out), op);
  return like(out, mine);
}

torch::Tensor all_gathered(const torch::Tensor& mine, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                           Communicator& comm) {
  const std::int64_t most = *std::ranges::max_element(sizes), least = *std::ranges::min_element(sizes);
  auto block = padded(on_host(mine), dim, most);
  auto all = torch::empty(in_front(comm.size(), block), block.options());
  comm.all_gather(view_of(block), view_of(all));
  if (dim == 0 && least == most) return like(all.flatten(0, 1), mine);
  std::vector<torch::Tensor> parts;
  for (int rank = 0; rank < comm.size(); ++rank) parts.push_back(all[rank].narrow(dim, 0, sizes[rank]));
  return like(torch::cat(parts, dim), mine);
}

torch::Tensor reduce_scattered(const torch::Tensor& whole, std::int64_t dim, const std::vector<std::int64_t>& sizes,
                               Communicator& comm) {
  const std::int64_t most = *std::ranges::max_element(sizes);
  auto host = whole.detach().to(torch::kCPU);
  std::vector<torch::Tensor> blocks;
  for (const auto& range : ranges_of(sizes)) {
    blocks.push_back(padded(host.narrow(dim, range.begin, range.end - range.begin), dim, most));
  }
  auto in = torch::stack(blocks);
  auto out = torch::empty(blocks[0].sizes(), in.options());
  comm.reduce_scatter(view_of(in), view_of(out));
  return like(out.narrow(dim, 0, sizes[comm.rank()]).contiguous(), whole);
}

std::vector<std::int64_t> all_gathered(const std::vector<std::int64_t>& mine, Communicator& comm) {
  std::vector<std::int64_t> all(mine.size() * comm.size());
  comm.all_gather(ConstView(mine), View(all));
  return all;
}

torch::Tensor assembled(const torch::Tensor& mine, const Cut& cut, Communicator& comm) {
  auto shape = mine.sizes().vec();
  shape[cut.dim] /= cut.groups;
  shape.insert(shape.begin() + cut.dim, cut.groups);
  return all_gathered(mine.reshape(shape), cut.dim + 1, cut.sizes, comm).flatten(cut.dim, cut.dim + 1);
}

torch::Tensor broadcast(const torch::Tensor& mine, Communicator& comm, int root) {
  auto data = on_host(mine).clone();
  comm.broadcast(view_of(data), root);
  return like(data, mine);
}

std::vector<Range> ranges_of(const std::vector<std::int64_t>& sizes) {
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (auto size : sizes) {
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

torch::Tensor moved(const torch::Tensor& mine, std::int64_t dim, const std::vector<Range>& from,
                    const std::vector<Range>& to, Communicator& comm) {
  const int me = comm.rank();
  auto held = mine.detach().to(torch::kCPU);
  auto slice = [&](const torch::Tensor& tensor, const Range& origin, const Range& part) {
    return tensor.narrow(dim, part.begin - origin.begin, part.end - part.begin);
  };
  auto shape = held.sizes().vec();
  shape[dim] = to[me].end - to[me].begin;
  auto result = torch::zeros(shape, held.options());
  std::vector<Message> messages;
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (auto part = common(from[me], to[peer]); peer != me && part.begin < part.end) {
      auto memory = slice(held, from[me], part).contiguous();
      messages.push_back({memory, {}, comm.send_async(view_of(memory), peer)});
    }
    if (auto part = common(from[peer], to[me]); part.begin < part.end) {
      if (peer == me) {
        slice(result, to[me], part).add_(slice(held, from[me], part));
        continue;
      }
      shape[dim] = part.end - part.begin;
      auto memory = torch::empty(shape, held.options());
      messages.push_back({memory, part, comm.recv_async(view_of(memory), peer)});
    }
  }
  wait_all(messages);
  for (auto& message : messages) {
    if (message.at != Range{}) slice(result, to[me], message.at).add_(message.memory);
  }
  return like(result, mine);
}

}  // namespace trireme::parallel
