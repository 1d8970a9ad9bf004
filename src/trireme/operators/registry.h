// The layers whose operators are replaced, known by their weights: LibTorch's operators are functions of tensors, and
// its modules' forward cannot be replaced from outside. One table in the process, as the dispatcher is one; any thread.
#pragma once
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/operators/settings.h"

namespace trireme::operators {

class Layer {
 public:
  Layer(std::string name, const Settings& settings) : name_(std::move(name)), settings_(settings) {}
  const Settings& settings() const { return settings_; }
  // Notes what was run; by any thread.
  void note(Use use);
  // The same of what a choice gives, made the first time: a choice stays.
  template <class Make>
  void note_choice(const void* choice, const Make& make) {
    if (is_new(choice)) note(make());
  }
  std::vector<Use> uses() const;

 private:
  bool is_new(const void* choice);

  const std::string name_;
  const Settings settings_;
  mutable Mutex mutex_;
  std::vector<const void*> choices_ TRIREME_GUARDED_BY(mutex_);
  std::vector<Use> uses_ TRIREME_GUARDED_BY(mutex_);
};

// In place of what was registered for this weight before; null: none any more.
void set_layer(const torch::Tensor& weight, std::shared_ptr<Layer> layer);
// Null where the weight's layer is LibTorch's alone.
std::shared_ptr<Layer> layer_of(const torch::Tensor& weight);
// Whether there is any in this process.
bool any_layer();

}  // namespace trireme::operators
