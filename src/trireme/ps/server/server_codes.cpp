#include "trireme/ps/server/server_codes.h"

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme::ps {

void ServerCodes::set_view(const View& view, ServerId self) {
  self_ = self;
  if (slices_.empty() && view.layout.shards() > 0) {
    const compress::Rules rules(view.compression.codec, view.compression.rules);
    if (rules.none()) return;
    context_.seed = view.compression.seed + 1;  // not the draws of the workers
    slices_ = cut(view.layout, rules);
    for (const auto& slices : slices_) {
      overhead_ += slices.size() * (compress::Codec::kHeader + 2 * sizeof(std::uint32_t));
    }
  }
  shadows_.keep_only(view, self);
  std::erase_if(gradients_, [&](auto& entry) {
    return entry.first >= view.chains.size() ||
           std::ranges::find(view.chains[entry.first], self) == view.chains[entry.first].end();
  });
}

void ServerCodes::decode(std::uint32_t shard, std::span<const std::byte> message, std::span<float> gradient) {
  if (shard >= slices_.size()) throw ProtocolError("an encoded push in a job without compression");
  auto found = gradients_.find(shard);
  if (found == gradients_.end()) {
    found = gradients_.emplace(shard, Coder(slices_[shard], Coder::Of::gradients, false, context_)).first;
  }
  found->second.decode(message, gradient);
}

Shadows::Answer ServerCodes::answer(WorkerId worker, const Shard& shard, std::uint64_t has) {
  static const std::vector<Slice> none;
  const auto& slices = any() ? slices_.at(shard.id()) : none;
  return shadows_.answer(self_, worker, shard, any() ? has : 0,
                         [&] { return Coder(slices, Coder::Of::differences, false, context_); });
}

}  // namespace trireme::ps
