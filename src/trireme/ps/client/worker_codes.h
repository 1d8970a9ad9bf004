// A worker's end of compression: the codecs of its gradients, and what it has of the weights.
#pragma once

#include "trireme/base/mutex.h"
#include "trireme/ps/client/client.h"
#include "trireme/ps/coder.h"

namespace trireme::ps {

// encode() by one thread at a time, take() and has() by one; any may ask for the report.
class WorkerCodes {
 public:
  WorkerCodes(const Layout& layout, const compress::Rules& rules, const Compression& compression, WorkerId id,
              std::size_t workers);

  // A push of all shards; shard i is bytes [begins[i], begins[i + 1]).
  struct Message {
    std::shared_ptr<std::byte[]> bytes;
    std::vector<std::size_t> begins;
    std::span<const std::byte> of(std::size_t shard) const {
      return {bytes.get() + begins[shard], begins[shard + 1] - begins[shard]};
    }
  };
  // Throws DataError that names the tensor.
  Message encode(std::span<const float> gradient);

  // The state of a shard that this worker has; 0: none.
  std::uint64_t has(std::size_t shard) const { return has_[shard]; }
  // Takes what a server sent of a shard: the weights (base 0), or a difference against the state `base`. Returns the
  // weights that this worker has then. Throws ProtocolError, and has none of the shard then.
  std::span<const float> take(std::size_t shard, std::uint64_t base, std::uint64_t number,
                              std::span<const std::byte> bytes);
  // The longest answer to a pull of everything.
  std::size_t longest_answer() const { return longest_answer_; }

  CompressionReport report() const;

 private:
  const Layout layout_;
  std::vector<Coder> gradients_, differences_;  // by shard
  std::size_t longest_answer_ = 0;
  std::vector<float> weights_;
  std::vector<std::uint64_t> has_;  // by shard
  std::uint64_t pushes_ = 0;

  mutable Mutex mutex_;
  CompressionReport report_ TRIREME_GUARDED_BY(mutex_);  // its error is the sum over the pushes looked at
  std::uint64_t looked_at_ TRIREME_GUARDED_BY(mutex_) = 0;
};

}  // namespace trireme::ps
