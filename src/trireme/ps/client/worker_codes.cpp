#include "trireme/ps/client/worker_codes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/base/error.h"

namespace trireme::ps {
namespace {

constexpr std::uint64_t kLookEvery = 16;  // pushes: errors are measured in so few of them

}  // namespace

WorkerCodes::WorkerCodes(const Layout& layout, const compress::Rules& rules, const Compression& compression,
                         WorkerId id, std::size_t workers)
    : layout_(layout), weights_(layout.count()), has_(layout.shards()) {
  const compress::Context context{.seed = compression.seed,
                                  .rank = static_cast<int>(id),
                                  .workers = static_cast<int>(std::max<std::size_t>(workers, id + 1)),
                                  .steps_per_epoch = compression.steps_per_epoch,
                                  .momentum = compression.momentum};
  for (const auto& slices : cut(layout, rules)) {
    gradients_.emplace_back(slices, Coder::Of::gradients, true, context);
    differences_.emplace_back(slices, Coder::Of::differences, false, context);
  }
  for (std::size_t shard = 0; shard < layout.shards(); ++shard) {
    longest_answer_ += std::max(differences_[shard].most_bytes(), layout.shard(shard).count * sizeof(float));
  }
}

WorkerCodes::Message WorkerCodes::encode(std::span<const float> gradient) {
  const double begin = now_seconds();
  const bool look = pushes_++ % kLookEvery == 0;
  std::size_t most = 0;
  for (const Coder& coder : gradients_) most += coder.most_bytes();
  Message message{std::shared_ptr<std::byte[]>(new std::byte[most]), {0}};
  Coded coded;
  for (std::size_t shard = 0; shard < gradients_.size(); ++shard) {
    const Segment range = layout_.shard(shard);
    const auto at = message.begins.back();
    message.begins.push_back(at + gradients_[shard].encode(gradient.subspan(range.offset, range.count),
                                                           message.bytes.get() + at, coded, look));
  }
  double carried = 0;
  for (const Coder& coder : gradients_) carried += look ? coder.carried() : 0;
  const MutexLock lock(mutex_);
  report_.bytes_before += coded.bytes_before;
  report_.bytes_after += coded.bytes_after;
  report_.encode_s += now_seconds() - begin;
  if (!look) return message;
  report_.carried = std::sqrt(carried);
  report_.error += coded.square > 0 ? std::sqrt(coded.square_left / coded.square) : 0;
  ++looked_at_;
  return message;
}

std::span<const float> WorkerCodes::take(std::size_t shard, std::uint64_t base, std::uint64_t number,
                                         std::span<const std::byte> bytes) {
  const Segment range = layout_.shard(shard);
  const auto weights = std::span(weights_).subspan(range.offset, range.count);
  const auto had = std::exchange(has_[shard], 0);
  if (base == 0) {
    if (bytes.size() != weights.size_bytes())
      throw ProtocolError("weights of a shard that are more or fewer than it has");
    if (!bytes.empty()) std::memcpy(weights.data(), bytes.data(), bytes.size());
  } else {
    if (base != had) throw ProtocolError("a difference against weights that this worker does not have");
    const double begin = now_seconds();
    Coded coded;
    differences_[shard].decode(bytes, weights, &coded);
    const MutexLock lock(mutex_);
    report_.bytes_before += coded.bytes_before;
    report_.bytes_after += coded.bytes_after;
    report_.decode_s += now_seconds() - begin;
  }
  has_[shard] = number;
  return weights;
}

CompressionReport WorkerCodes::report() const {
  const MutexLock lock(mutex_);
  auto report = report_;
  if (looked_at_ > 0) report.error /= static_cast<double>(looked_at_);
  return report;
}

}  // namespace trireme::ps
