#include "trireme/parallel/shard/flat_gradients.h"

#include "trireme/parallel/tensor_memory.h"

namespace trireme::parallel {

FlatGradients::FlatGradients(Exchange& exchange, const FlatParameters& flat, Op op, bool stays_whole)
    : exchange_(exchange), flat_(flat), op_(op), stays_whole_(stays_whole) {
  const auto own = static_cast<std::int64_t>(flat.shard_elements());
  if (stays_whole_) {
    make_room();
    shard_ = whole_.narrow(0, exchange_.comm().rank() * own, own);
  } else {
    shard_ = flat.room(flat.shard_elements(), MemoryClass::gradients);
  }
}

void FlatGradients::make_room() {
  if (whole_.defined()) return;
  whole_ = flat_.room(flat_.elements(), MemoryClass::gradients);
  std::size_t end = 0;  // between parts nothing is ever written, and yet it is added up
  for (const auto& part : flat_.parts()) {
    whole_.slice(0, end, part.offset).zero_();
    end = part.offset + part.count;
  }
  whole_.slice(0, end).zero_();
}

void FlatGradients::begin() {
  settle();
  collected_ = false;
  sums_ = 0;
}

void FlatGradients::add(std::size_t part, const torch::Tensor& gradient) {
  auto here = flat_.view(whole_, flat_.parts()[part]);
  if (!gradient.defined()) {
    if (!collected_) here.zero_();
  } else if (collected_) {
    here.add_(gradient);
  } else if (gradient.layout() == torch::kStrided) {
    here.copy_(gradient);
  } else {
    here.zero_().add_(gradient);
  }
}

void FlatGradients::scatter() {
  if (!collected_) collect([](std::size_t, const torch::Tensor&) {});
  const bool on_host = flat_.device().is_cpu();
  if (!on_host) {
    leaving_ = flat_.twin(flat_.elements()).copy_(whole_);
    arriving_ = flat_.twin(flat_.shard_elements());
  } else if (sums_ > 0) {
    arriving_ = flat_.room(flat_.shard_elements(), MemoryClass::gradients);
  }
  work_ = exchange_.reduce_scatter(view_of(on_host ? whole_ : leaving_),
                                   view_of(arriving_.defined() ? arriving_ : shard_), op_);
  under_way_ = true;
  ++sums_;
  if (!exchange_.background()) settle();
}

void FlatGradients::settle() {
  if (!under_way_) return;
  exchange_.wait(work_);
  under_way_ = false;
  collected_ = false;
  if (arriving_.defined()) {
    torch::NoGradGuard no_grad;
    const auto here = arriving_.to(flat_.device());
    sums_ > 1 ? shard_.add_(here) : shard_.copy_(here);
    arriving_.reset();
    leaving_.reset();
  }
  if (!stays_whole_) whole_.reset();
}

}  // namespace trireme::parallel
