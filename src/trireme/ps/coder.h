// One shard's values as they travel in a compressed job, slice after slice:
//
//   without a codec   4 bytes per element, the values themselves
//   with one          4 bytes: the length of the message   in differences 4 bytes: a factor   the message
//
// A message of gradients says their values. One of differences says what, times the factor, is to be added to weights
// that the receiver has. The factor is 1 but where a codec's rounding is coarser than the difference is large; then it
// is the one that brings the receiver nearest, so that what is missing always shrinks.
#pragma once
#include <memory>
#include <span>

#include "trireme/ps/slices.h"

namespace trireme::ps {

// What came of encoding some slices; of those with a codec alone.
struct Coded {
  std::uint64_t bytes_before = 0, bytes_after = 0;
  double square = 0, square_left = 0;  // of what was encoded, and of what the messages lack; where it was looked at
};

// One direction of one shard. A coder is used by one thread at a time.
class Coder {
 public:
  enum class Of { gradients, differences };
  // `feedback`: with what the choice says of it, for the one who encodes gradients.
  Coder(const std::vector<Slice>& slices, Of of, bool feedback, const compress::Context& context);

  // The longest message.
  std::size_t most_bytes() const { return most_bytes_; }
  // Both return the bytes written. Throw DataError that names the tensor when a value is not finite; then nothing was
  // written that counts, but codecs may have gone on.
  // `look`: whether errors are measured, which costs two passes more.
  std::size_t encode(std::span<const float> gradient, std::byte* message, Coded& coded, bool look);
  // `shadow`, what the receiver has, becomes what it will have.
  std::size_t encode(std::span<const float> weights, std::span<float> shadow, std::byte* message);
  // into ← the gradients, or the weights with what the differences say. Throws ProtocolError for whatever the message
  // holds; `into` is then undefined.
  void decode(std::span<const std::byte> message, std::span<float> into, Coded* coded = nullptr) const;
  // The sum of squares of what error feedback holds.
  double carried() const;

 private:
  struct Entry {
    std::string name;  // of the tensor
    std::uint64_t begin, count;
    std::unique_ptr<compress::Codec> codec;  // null: none
  };
  std::size_t encode_difference(const Entry& entry, std::span<const float> weights, std::span<float> shadow,
                                std::byte* message);
  template <typename Encode>
  static std::size_t naming(const Entry& entry, Encode encode);

  const Of of_;
  std::vector<Entry> entries_;
  std::size_t most_bytes_ = 0, count_ = 0;
  std::vector<float> left_, said_;  // scratch
};

}  // namespace trireme::ps
