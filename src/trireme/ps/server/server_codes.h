// A server's end of compression: the decoders of gradients, and the differences it answers pulls with. Made once the
// job's rules and layout are known; does nothing in a job without compression.
#pragma once
#include "trireme/ps/server/shadows.h"

namespace trireme::ps {

class ServerCodes {
 public:
  // Throws ConfigError when the rules name a codec that this server does not know.
  void set_view(const View& view, ServerId self);
  bool any() const { return !slices_.empty(); }
  // Bytes by which encoded gradients of the whole model may be longer than dense ones.
  std::size_t overhead() const { return overhead_; }

  // gradient ← what a message says. Throws ProtocolError, also when nothing may be encoded.
  void decode(std::uint32_t shard, std::span<const std::byte> message, std::span<float> gradient);
  // In a job without compression always the weights as they are.
  Shadows::Answer answer(WorkerId worker, const Shard& shard, std::uint64_t has);

 private:
  ServerId self_ = kNobody;
  compress::Context context_;
  std::vector<std::vector<Slice>> slices_;  // by shard; none: no compression
  std::size_t overhead_ = 0;
  std::map<std::uint32_t, Coder> gradients_;  // by shard
  Shadows shadows_;
};

}  // namespace trireme::ps
