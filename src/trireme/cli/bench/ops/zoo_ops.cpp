#include "trireme/cli/bench/ops/zoo_ops.h"

#include <algorithm>
#include <cmath>

#include "trireme/base/text/nearest.h"

namespace trireme::bench {
namespace {

constexpr int64_t kClasses = 10, kTokens = 256;

// Layer after layer on square images of one batch; of equal operators one stays, with their number.
class ZooLayers {
 public:
  ZooLayers(int64_t batch, int64_t channels, int64_t size) : batch_(batch), channels_(channels), size_(size) {}
  explicit ZooLayers(int64_t rows) : batch_(rows), channels_(0), size_(1) {}

  void conv(int64_t filters, int64_t kernel, int64_t stride = 1, int64_t padding = -1) {
    if (padding < 0) padding = kernel / 2;
    const ops::ConvShape shape{.batch = batch_,
                               .in_channels = channels_,
                               .height = size_,
                               .width = size_,
                               .out_channels = filters,
                               .kernel = {kernel, kernel},
                               .stride = {stride, stride},
                               .padding = {padding, padding}};
    add("conv", shape);
    channels_ = filters;
    size_ = shape.out_height();
  }
  void batch_norm(bool skip, bool relu) {
    add("batch-norm", BatchNormShape{{batch_ * size_ * size_, channels_}, skip, relu});
  }
  void relu() { add("relu", ops::RowShape{batch_ * size_ * size_, channels_}); }
  void max_pool_relu(int64_t kernel) {
    add("max-pool", pooling(kernel, true));
    size_ /= kernel;
  }
  void mean_pool() {
    add("mean-pool", pooling(size_, false));
    size_ = 1;
  }
  void linear(int64_t inputs, int64_t outputs) {
    add("matmul", LinearShape{batch_, outputs, inputs});
    channels_ = outputs;
    size_ = 1;
  }
  // The picture flattened.
  void linear(int64_t outputs) { linear(channels_ * size_ * size_, outputs); }
  void cross_entropy() { rows("cross-entropy", channels_); }
  void rows(std::string_view family, int64_t columns) { add(family, ops::RowShape{batch_, columns}); }

  void add(std::string_view family, OpShape shape) {
    const auto text = find_op_family(family).text(shape);
    const auto same = std::ranges::find_if(
        all_, [&](const ZooOp& it) { return it.family == family && find_op_family(family).text(it.shape) == text; });
    if (same != all_.end()) {
      ++same->layers;
    } else {
      all_.push_back({family, std::move(shape)});
    }
  }
  int64_t channels() const { return channels_; }
  void put_back(int64_t channels, int64_t size) { channels_ = channels, size_ = size; }
  int64_t size() const { return size_; }
  std::vector<ZooOp> all() const { return all_; }

 private:
  PoolingShape pooling(int64_t kernel, bool relu) const {
    return {.batch = batch_,
            .channels = channels_,
            .height = size_,
            .width = size_,
            .kernel = {kernel, kernel},
            .stride = {kernel, kernel},
            .relu = relu};
  }

  int64_t batch_, channels_, size_;
  std::vector<ZooOp> all_;
};

// Stages of blocks of two convolutions each; the first of a later stage halves the image, and `project` brings what it
// was given to the new shape.
std::vector<ZooOp> residual_net(int64_t batch, int64_t width, std::initializer_list<int> stages, bool project) {
  ZooLayers net(batch, 3, 32);
  net.conv(width, 3);
  net.batch_norm(false, true);
  bool first_stage = true;
  for (const int blocks : stages) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = !first_stage && block == 0 ? 2 : 1;
      const int64_t channels = net.channels(), size = net.size();
      net.conv(width, 3, stride);
      net.batch_norm(false, true);
      net.conv(width, 3);
      const int64_t half = net.size();
      if (project && stride > 1) {
        net.put_back(channels, size);
        net.conv(width, 1, stride, 0);
        net.batch_norm(false, false);
        net.put_back(width, half);
      }
      net.batch_norm(true, true);
    }
    first_stage = false;
    width *= 2;
  }
  net.mean_pool();
  net.linear(kClasses);
  net.cross_entropy();
  return net.all();
}

std::vector<ZooOp> resnet18_ops(int64_t batch, int64_t) { return residual_net(batch, 64, {2, 2, 2, 2}, true); }
std::vector<ZooOp> resnet32_ops(int64_t batch, int64_t) { return residual_net(batch, 16, {5, 5, 5}, false); }

std::vector<ZooOp> vgg11_ops(int64_t batch, int64_t) {
  ZooLayers net(batch, 3, 32);
  for (const auto& [filters, pooled] : {std::pair<int64_t, bool>{64, true},
                                        {128, true},
                                        {256, false},
                                        {256, true},
                                        {512, false},
                                        {512, true},
                                        {512, false},
                                        {512, true}}) {
    net.conv(filters, 3);
    pooled ? net.max_pool_relu(2) : net.relu();
  }
  net.linear(kClasses);
  net.cross_entropy();
  return net.all();
}

std::vector<ZooOp> lenet_ops(int64_t batch, int64_t) {
  ZooLayers net(batch, 1, 28);
  net.conv(6, 5);
  net.max_pool_relu(2);
  net.conv(16, 5, 1, 0);
  net.max_pool_relu(2);
  for (const int64_t outputs : {120, 84}) {
    net.linear(outputs);
    net.relu();
  }
  net.linear(kClasses);
  net.cross_entropy();
  return net.all();
}

std::vector<ZooOp> mlp_wide_ops(int64_t batch, int64_t) {
  ZooLayers net(batch, 1, 28);
  for (int layer = 0; layer < 2; ++layer) {
    net.linear(2048);
    net.relu();
  }
  net.linear(kClasses);
  net.cross_entropy();
  return net.all();
}

std::vector<ZooOp> lstm_lm_ops(int64_t batch, int64_t length) {
  constexpr int64_t kWidth = 256;
  ZooLayers net(batch * length);
  net.rows("dropout", kWidth);
  for (int layer = 0; layer < 2; ++layer) {
    net.add("lstm", ops::RecurrentShape{.input = kWidth, .hidden = kWidth, .steps = length, .batch = batch});
    net.rows("dropout", kWidth);
  }
  net.linear(kWidth, kTokens);
  net.cross_entropy();
  return net.all();
}

std::vector<ZooOp> gpt_small_ops(int64_t batch, int64_t length) {
  constexpr int64_t kWidth = 256, kHeads = 4, kBlocks = 4;
  constexpr float kDropped = 0.1f;
  ZooLayers net(batch * length);
  net.rows("dropout", kWidth);
  for (int64_t block = 0; block < kBlocks; ++block) {
    net.rows("layer-norm", kWidth);
    net.linear(kWidth, 3 * kWidth);
    net.add("attention", ops::AttentionShape{.batch = batch,
                                             .heads = kHeads,
                                             .queries = length,
                                             .keys = length,
                                             .dim = kWidth / kHeads,
                                             .causal = true,
                                             .scale = 1 / std::sqrt(static_cast<float>(kWidth / kHeads)),
                                             .dropout = kDropped,
                                             .seed = 1});
    net.linear(kWidth, kWidth);
    net.rows("dropout", kWidth);
    net.rows("layer-norm", kWidth);
    net.linear(kWidth, 4 * kWidth);
    net.rows("gelu", 4 * kWidth);
    net.linear(4 * kWidth, kWidth);
    net.rows("dropout", kWidth);
  }
  net.rows("layer-norm", kWidth);
  net.linear(kWidth, kTokens);
  net.cross_entropy();
  return net.all();
}

constexpr std::array kZooModels{ZooModel{"resnet18", 16, 0, resnet18_ops},   ZooModel{"resnet32", 32, 0, resnet32_ops},
                                ZooModel{"vgg11", 32, 0, vgg11_ops},         ZooModel{"lenet", 64, 0, lenet_ops},
                                ZooModel{"mlp-wide", 64, 0, mlp_wide_ops},   ZooModel{"lstm-lm", 16, 64, lstm_lm_ops},
                                ZooModel{"gpt-small", 8, 128, gpt_small_ops}};

}  // namespace

std::span<const ZooModel> zoo_models() { return kZooModels; }

const ZooModel& find_zoo_model(std::string_view name) {
  const auto found = std::ranges::find(kZooModels, name, &ZooModel::name);
  if (found != kZooModels.end()) return *found;
  std::vector<std::string_view> names;
  for (const ZooModel& model : kZooModels) names.push_back(model.name);
  not_one_of("--model", name, names);
}

}  // namespace trireme::bench
