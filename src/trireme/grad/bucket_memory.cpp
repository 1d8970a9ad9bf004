#include "trireme/grad/bucket_memory.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/grad/element_type.h"
#include "trireme/grad/heap_allocator.h"
#include "trireme/sync/exchange/bucket_layout.h"

namespace trireme::grad {
namespace {

// A tensor in the transport's heap, which lives as long as the tensor does.
torch::Tensor heap_tensor(Communicator& comm, std::size_t elements, torch::ScalarType type) {
  auto memory = comm.allocate_bytes(elements * c10::elementSize(type));
  void* data = memory.get();
  return torch::from_blob(
      data, {static_cast<std::int64_t>(elements)}, [memory](void*) mutable { memory.reset(); }, type);
}

}  // namespace

DType element_type(const Parameter& parameter) {
  const auto type = parameter.tensor.scalar_type();
  if (!torch::isFloatingType(type) || !element_type(type)) {
    throw ConfigError(fmt::format("parameter '{}' is {}; gradients are exchanged as f32, f64, f16 or bf16",
                                  parameter.name, torch::toString(type)));
  }
  return *element_type(type);
}

BucketMemory::BucketMemory(Communicator& comm, int index, const std::vector<Parameter>& parameters,
                           std::vector<int> members, std::size_t notes, std::span<float> given)
    : index_(index), members_(std::move(members)), notes_(notes), given_(given), views_(members_.size()) {
  const auto& first = parameters[members_.front()];
  dtype_ = element_type(first);
  element_size_ = size_of(dtype_);
  on_device_ = !first.tensor.is_cpu();
  const std::size_t line = given.empty() ? sync::bucket_line(element_size_) : 1;
  for (int member : members_) {
    const auto& tensor = parameters[member].tensor;
    auto count = static_cast<std::size_t>(tensor.numel());
    std::size_t rows = tensor.dim() > 1 ? tensor.size(0) : 1;
    segments_.push_back({member, elements_, count, rows});
    elements_ += sync::padded(count, line);
  }
  elements_ = segments_.back().offset + segments_.back().count;
  TRIREME_CHECK(given.empty() || (dtype_ == DType::f32 && given.size() == elements_));
  const bool carries = sync::carries_notes(static_cast<int>(members_.size()), element_size_ * elements_);
  if (on_device_ || dtype_ != DType::f32 || !carries) notes_ = 0;

  std::vector<torch::Tensor> tensors;
  for (int member : members_) tensors.push_back(parameters[member].tensor.detach());
  make_flat_ = [this, &comm, tensors, type = first.tensor.scalar_type()] {
    auto options = torch::TensorOptions().dtype(type);
    if (on_device_) {
      pinned_ = given_.empty() ? torch::zeros({static_cast<std::int64_t>(elements_)}, options.pinned_memory(true))
                               : torch::from_blob(given_.data(), {static_cast<std::int64_t>(elements_)}, options);
      flat_ = torch::zeros({static_cast<std::int64_t>(elements_)}, options.device(tensors[0].device()));
    } else if (!given_.empty()) {
      flat_ = torch::from_blob(given_.data(), {static_cast<std::int64_t>(elements_)}, options);
    } else {
      flat_ = heap_tensor(comm, elements_ + notes_, type);
      flat_.zero_();
    }
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      // As the parameter's own strides where they are dense (channels last), else contiguous. Not views in autograd's
      // sense, for optimizers detach gradients in place.
      bool dense = tensors[k].is_non_overlapping_and_dense();
      auto like = dense ? tensors[k] : tensors[k].contiguous();
      auto offset = static_cast<std::int64_t>(segments_[k].offset);
      views_[k] = torch::empty({0}, flat_.options()).set_(flat_.storage(), offset, like.sizes(), like.strides());
    }
  };
}

void BucketMemory::take(torch::Tensor& parameter, std::size_t member, bool born_in_heap) {
  torch::NoGradGuard no_grad;
  handed_over_ = false;
  auto& gradient = parameter.mutable_grad();
  if (members_.size() == 1 && given_.empty() && born_in_heap && gradient.is_non_overlapping_and_dense() &&
      gradient.strides() == parameter.strides()) {
    alone_ = gradient.detach();
    return;
  }
  if (!flat_.defined()) make_flat_();
  auto& here = view(member);
  if (!gradient.defined()) {
    here.zero_();
  } else if (gradient.data_ptr() != here.data_ptr()) {
    here.copy_(gradient);
    gradient = here;
  }
}

float* BucketMemory::notes() { return notes_ == 0 ? nullptr : flat_.data_ptr<float>() + elements_; }

sync::Bucket BucketMemory::bucket() {
  if (alone_.defined()) return {index_, View(alone_.data_ptr(), elements_, dtype_), segments_};
  if (on_device_) pinned_.copy_(flat_);
  handed_over_ = true;
  auto& host = on_device_ ? pinned_ : flat_;
  return {index_, View(host.data_ptr(), elements_ + notes_, dtype_), segments_};
}

void BucketMemory::give(torch::Tensor& parameter, std::size_t member) {
  if (alone_.defined()) {
    alone_.reset();
    return;
  }
  if (on_device_ && handed_over_) flat_.copy_(pinned_, /*non_blocking=*/true);
  handed_over_ = false;
  auto& gradient = parameter.mutable_grad();
  if (!gradient.defined() || gradient.data_ptr() != view(member).data_ptr()) gradient = view(member);
}

void BucketMemory::scale(double factor) {
  torch::NoGradGuard no_grad;
  auto& here = alone_.defined() ? alone_ : on_device_ && handed_over_ ? pinned_ : flat_;
  here.mul_(factor);
}

}  // namespace trireme::grad
