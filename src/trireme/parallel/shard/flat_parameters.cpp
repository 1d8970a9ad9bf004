#include "trireme/parallel/shard/flat_parameters.h"

#include <c10/core/DeviceGuard.h>

#include "trireme/grad/bucket_memory.h"

namespace trireme::parallel {
namespace {

// Not a view in autograd's sense: optimizers write into it.
torch::Tensor over(const torch::Tensor& memory, std::size_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const auto from = memory.storage_offset() + static_cast<std::int64_t>(offset);
  return torch::empty({0}, memory.options()).set_(memory.storage(), from, sizes, strides);
}

torch::Tensor row(const torch::Tensor& memory, std::size_t offset, std::size_t count) {
  return over(memory, offset, {static_cast<std::int64_t>(count)}, {1});
}

std::size_t up_to(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

}  // namespace

FlatParameters::FlatParameters(Exchange& exchange, std::vector<FlatPart> parts, bool learning, bool stays_whole)
    : exchange_(exchange),
      parts_(std::move(parts)),
      device_(parts_.front().parameter.device()),
      learning_(learning),
      stays_whole_(stays_whole) {
  torch::NoGradGuard no_grad;
  const std::size_t line = 64 / c10::elementSize(type());
  std::size_t end = 0;
  for (auto& part : parts_) {
    part.offset = end;
    part.count = static_cast<std::size_t>(part.parameter.numel());
    end += up_to(part.count, line);
  }
  auto& comm = exchange_.comm();
  shard_elements_ = up_to(std::max(end, line), line * ranks()) / ranks();
  whole_ = room(elements(), MemoryClass::parameters);
  whole_.zero_();
  for (auto& part : parts_) {
    // As the parameter's own strides where they are dense (channels last), else contiguous.
    auto old = part.parameter.detach();
    if (!old.is_non_overlapping_and_dense()) old = old.contiguous();
    auto here = over(whole_, part.offset, old.sizes(), old.strides());
    here.copy_(old);
    part.parameter.set_data(here);
  }
  const auto own = row(whole_, comm.rank() * shard_elements_, shard_elements_);
  if (stays_whole_) {
    shard_ = own;
  } else {
    shard_ = room(shard_elements_, MemoryClass::parameters);
    shard_.copy_(own);
    release();
  }
}

torch::Tensor FlatParameters::room(std::size_t elements, MemoryClass what) const {
  if (device_.is_cpu()) return heap_tensor(exchange_.comm(), elements, type(), what);
  return torch::empty({static_cast<std::int64_t>(elements)}, parts_.front().parameter.options().requires_grad(false));
}

// Copies from and to memory that is not pinned are many times slower.
torch::Tensor FlatParameters::twin(std::size_t elements) const {
  return torch::empty({static_cast<std::int64_t>(elements)}, torch::TensorOptions(type()).pinned_memory(true));
}

FlatParameters::Range FlatParameters::owned(const FlatPart& part, int rank) const {
  const std::size_t first = rank * shard_elements_;
  const std::size_t begin = std::clamp(first, part.offset, part.offset + part.count);
  const std::size_t end = std::clamp(first + shard_elements_, part.offset, part.offset + part.count);
  return {begin - part.offset, end - part.offset};
}

torch::Tensor FlatParameters::piece(const torch::Tensor& shard, const FlatPart& part) const {
  const int rank = exchange_.comm().rank();
  const auto own = owned(part, rank);
  return row(shard, own.count() == 0 ? 0 : part.offset + own.begin - rank * shard_elements_, own.count());
}

torch::Tensor FlatParameters::view(const torch::Tensor& whole, const FlatPart& part) const {
  return over(whole, part.offset, part.parameter.sizes(), part.parameter.strides());
}

void FlatParameters::start_gather() {
  if (state_ != State::away) return;
  torch::NoGradGuard no_grad;
  if (device_.is_cpu()) {
    if (!stays_whole_) {
      whole_.storage().set_data_ptr(heap_memory(exchange_.comm(), bytes(), MemoryClass::parameters));
    }
    gather_ = exchange_.all_gather(view_of(shard_), view_of(whole_));
  } else {
    leaving_ = twin(shard_elements_).copy_(shard_);
    arriving_ = twin(elements());
    gather_ = exchange_.all_gather(view_of(leaving_), view_of(arriving_));
  }
  state_ = State::coming;
}

void FlatParameters::need() {
  start_gather();
  if (state_ == State::coming) land();
  state_ = State::there;
}

void FlatParameters::land() {
  exchange_.wait(gather_);
  if (device_.is_cpu()) return;
  torch::NoGradGuard no_grad;
  if (!stays_whole_) {
    c10::DeviceGuard guard(device_);
    whole_.storage().set_data_ptr(c10::GetAllocator(device_.type())->allocate(bytes()));
  }
  whole_.copy_(arriving_);
  leaving_.reset();
  arriving_.reset();
}

void FlatParameters::outdate() {
  if (state_ == State::coming) need();
  if (stays_whole_) state_ = State::away;
  release();
}

void FlatParameters::release() {
  if (stays_whole_ || state_ == State::away) return;
  if (state_ == State::coming) land();
  whole_.storage().set_data_ptr(c10::DataPtr(nullptr, device_));
  state_ = State::away;
}

}  // namespace trireme::parallel
