// Which layers are split, and how: "fc1=column,fc2=row,conv*=out-channels".
#pragma once
#include <torch/torch.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::parallel {

// Patterns over the names of layers (* any characters, ? one), each with a kind; of those that match a name the first
// counts, as in --compress-rule. The kind "whole" leaves a layer as it is.
class TensorRules {
 public:
  // Throws ConfigError. Empty text: no layer is split.
  explicit TensorRules(std::string_view text);

  // The kind a model's layers have, in the order of the model; layers that stay whole are left out. Throws ConfigError
  // for a pattern that matches nothing and for a kind that a layer does not have, listing what there is.
  std::vector<std::pair<std::string, std::string>> kinds_in(const torch::nn::Module& model) const;

  const std::vector<std::pair<std::string, std::string>>& rules() const { return rules_; }

 private:
  std::vector<std::pair<std::string, std::string>> rules_;
};

// What a model of the zoo is split by when nothing is said; for other models ConfigError. Where layers follow each
// other, outputs and inputs are split in turn, so that two layers cost one exchange each way.
std::string default_rules(std::string_view name, const torch::nn::Module& model);

}  // namespace trireme::parallel
