#include "trireme/operators/registry.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

namespace trireme::operators {
namespace {

// Weak references keep a tensor's address from being given to another.
struct Registered {
  c10::weak_intrusive_ptr<c10::TensorImpl> weight;
  std::shared_ptr<Layer> layer;
};

struct Table {
  Mutex mutex;
  std::unordered_map<const c10::TensorImpl*, Registered> layers TRIREME_GUARDED_BY(mutex);
  std::atomic<std::size_t> size = 0;
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

void Layer::note(Use use) {
  use.layer = name_;
  MutexLock lock(mutex_);
  for (Use& known : uses_) {
    if (known.operation == use.operation && known.pass == use.pass && known.shape == use.shape) {
      known = std::move(use);
      return;
    }
  }
  uses_.push_back(std::move(use));
}

bool Layer::is_new(const void* choice) {
  MutexLock lock(mutex_);
  if (std::ranges::find(choices_, choice) != choices_.end()) return false;
  choices_.push_back(choice);
  return true;
}

std::vector<Use> Layer::uses() const {
  MutexLock lock(mutex_);
  return uses_;
}

void set_layer(const torch::Tensor& weight, std::shared_ptr<Layer> layer) {
  Table& all = table();
  MutexLock lock(all.mutex);
  std::erase_if(all.layers, [](const auto& item) { return item.second.weight.expired(); });
  all.layers.erase(weight.unsafeGetTensorImpl());
  if (layer) {
    all.layers.emplace(
        weight.unsafeGetTensorImpl(),
        Registered{c10::weak_intrusive_ptr<c10::TensorImpl>(weight.getIntrusivePtr()), std::move(layer)});
  }
  all.size = all.layers.size();
}

std::shared_ptr<Layer> layer_of(const torch::Tensor& weight) {
  Table& all = table();
  if (all.size == 0 || !weight.defined()) return nullptr;
  MutexLock lock(all.mutex);
  const auto found = all.layers.find(weight.unsafeGetTensorImpl());
  return found == all.layers.end() ? nullptr : found->second.layer;
}

bool any_layer() { return table().size > 0; }

}  // namespace trireme::operators
