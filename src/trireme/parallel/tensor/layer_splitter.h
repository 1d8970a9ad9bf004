// Fits the rules to a model: one pass of an example through the whole model notes the shape of every layer's input; a
// second pass splits the layers, each when its input arrives, for only then is known how that lies on the ranks.
// Private to the folder.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/nn/layers.h"
#include "trireme/parallel/tensor/split_request.h"

namespace trireme::parallel {

class LayerSplitter {
 public:
  using Forward = std::function<torch::Tensor(torch::Tensor)>;
  LayerSplitter(torch::nn::Module& model, Communicator& comm,
                const std::vector<std::pair<std::string, std::string>>& kinds);
  // Layers compute by themselves again unless finish() was reached.
  ~LayerSplitter();
  LayerSplitter(const LayerSplitter&) = delete;
  LayerSplitter& operator=(const LayerSplitter&) = delete;

  // Both passes, in evaluation mode and without gradients. Returns how the scores lie.
  Placement run(const Forward& forward, const torch::Tensor& example);

  const std::map<std::string, Cut>& cuts() const { return cuts_; }
  const std::vector<std::string>& report() const { return report_; }
  bool gathers_batch() const { return batch_gathered_; }
  // Parameters of the layers before the one that gathers the batch.
  std::vector<std::string> before_batch() const;

 private:
  using Shape = std::vector<std::int64_t>;
  struct Call {
    Shape shape;
    Placement placement = {};
  };
  struct Entry {
    std::string name;
    std::shared_ptr<torch::nn::Module> module;
    nn::Layer* layer = nullptr;
    const SplitKind* kind = nullptr;  // null: no rule
    std::vector<Call> calls, score_calls;
    std::size_t called = 0, scored = 0;
    bool fitted = false, before_batch = false, behind_batch = false;
    MadeSplit made;
    std::string rule() const { return kind ? name + "=" + std::string(kind->name) : name; }
  };

  void listen();
  void intercept();
  void finish();
  torch::Tensor arrive(Entry& entry, const torch::Tensor& input);
  torch::Tensor arrive_scores(Entry& entry, const torch::Tensor& input, const torch::Tensor& bias);
  SplitRequest request_of(const Entry& entry, const Call& call);
  void make(Entry& entry, const Call& call);
  void make_dropout(Entry& entry);
  void cut(const Entry& entry, torch::Tensor tensor, const Cut& cut);
  // How `tensor` lies, where it would be `shape` if whole. Collective.
  Placement placement_of(const std::string& name, const Shape& shape, const torch::Tensor& tensor);
  void compare(const torch::Tensor& whole, const torch::Tensor& split, const Placement& placement);

  Communicator& comm_;
  torch::nn::Module& model_;
  std::vector<Entry> entries_;
  std::map<const void*, std::string> names_;  // of parameters and buffers
  std::map<std::string, Cut> cuts_;
  std::vector<std::string> report_;
  std::string last_ = "the input";  // the last layer that was split
  bool batch_gathered_ = false, finished_ = false;
};

}  // namespace trireme::parallel
