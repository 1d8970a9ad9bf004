#include "trireme/sync/strategies/model_mean.h"

#include <algorithm>
#include <cmath>

namespace trireme::sync {

std::unique_ptr<CompressedMean> make_compressed_mean(const Context& context, Op op, NotFinite not_finite) {
  if (context.compress.none()) return nullptr;
  std::vector<compress::Tensor> tensors;
  for (const auto& tensor : context.tensors) {
    tensors.push_back({tensor.name, tensor.count, tensor.rows, static_cast<int>(tensors.size())});
  }
  return std::make_unique<CompressedMean>(context.world, tensors, context.codes(), op, not_finite);
}

void add_to(Report& report, const CompressedMean* codes) {
  if (!codes) return;
  report.bytes_sent += codes->bytes_sent();
  const auto more = codes->report();
  if (!report.compressed) {
    report.compressed = more;
    return;
  }
  auto& sum = *report.compressed;
  sum.bytes_before += more.bytes_before;
  sum.bytes_after += more.bytes_after;
  sum.encode_s += more.encode_s;
  sum.decode_s += more.decode_s;
  sum.error = std::max(sum.error, more.error);
  sum.carried = std::hypot(sum.carried, more.carried);
}

std::vector<std::pair<std::string, CompressedMean*>> named(std::string name, CompressedMean* codes) {
  if (!codes) return {};
  return {{std::move(name), codes}};
}

std::vector<Strategy::Kept> ModelMean::state() const {
  if (common_.size() == 0) return {};
  return {{"common", common_.span()}};
}

void ModelMean::operator()(std::span<const float> mine, std::span<const float> common, std::span<float> out) {
  if (!codes_) return world_.all_reduce(mine, out, Op::avg);
  if (difference_.size() == 0) difference_ = FlatVector(world_, mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) difference_[i] = mine[i] - common[i];
  (*codes_)(difference_.span());
  for (std::size_t i = 0; i < mine.size(); ++i) out[i] = common[i] + difference_[i];
}

void ModelMean::operator()(std::span<float> weights) {
  (*this)(weights, common_.span(), weights);
  if (codes_) common_ = weights;
}

}  // namespace trireme::sync
