// How the codes of all ranks become the mean of what they stand for: the three ways of compress/codec.h, by
// collectives.
//
// P ranks; a tensor of n bytes is encoded in b of them (a share of it in b/P). Sent by each rank:
//   sum      2(P−1)/P · b, per round
//   scatter  (P−1) · the longest share's code, and (P−1) · its code once merged
//   gather   (P−1) · the longest rank's code, and 8(P−1) for each tensor's length
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/collective/run/communicator.h"
#include "trireme/compress/codec.h"
#include "trireme/sync/exchange/codes.h"

namespace trireme::sync {

// One tensor in an exchange.
struct Coded {
  const std::string* name = nullptr;
  compress::Codec* codec = nullptr;  // for what this rank sends
  compress::Codec* again = nullptr;  // with scatter: for the share that this rank owns, once merged
  std::span<float> x;                // this rank's; afterwards the result
  float* left = nullptr;             // where wanted: what this rank's code lacked, as long as x
};

// The part of a tensor that a rank merges for all. The same elements whatever else travels with it.
struct Share {
  std::size_t offset = 0, count = 0;
};
Share share_of(std::size_t count, std::size_t block, int ranks, int rank);

// With gather every tensor's is sent before the codes.
using CodeLength = std::int64_t;

class CodeExchange {
 public:
  // `op`: avg or sum. The communicator must outlive it.
  CodeExchange(Communicator& comm, Op op, NotFinite bad) : comm_(comm), op_(op), bad_(bad) {}

  // Exchanges all of them, each by its codec's aggregation. Collective; every rank passes the same tensors in the same
  // order. Throws DataError that names a tensor that is not finite, where that is an error.
  void exchange(std::span<const Coded> tensors);

  double encode_s() const { return encode_s_; }
  double decode_s() const { return decode_s_; }

 private:
  // Memory for codes, in the transport's heap; grows.
  struct Buffer {
    std::shared_ptr<std::byte[]> memory;
    std::size_t size = 0;
  };
  std::byte* room(Buffer& buffer, std::size_t bytes);

  void sum(std::span<const Coded> tensors, DType type);
  void scatter(std::span<const Coded> tensors);
  void gather(std::span<const Coded> tensors);
  // encode(x), or of zeros where x is not finite and may be.
  template <typename Encode>
  std::size_t encode(const Coded& tensor, std::span<float> x, const Encode& encode);
  float factor() const { return op_ == Op::avg ? 1.0f / static_cast<float>(comm_.size()) : 1.0f; }

  Communicator& comm_;
  const Op op_;
  const NotFinite bad_;
  Buffer mine_, all_;
  std::vector<float> share_;
  double encode_s_ = 0, decode_s_ = 0;
};

}  // namespace trireme::sync
