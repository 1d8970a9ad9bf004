// What an exchange of some tensors is made of: collectives, and seconds of coding around them. The three aggregations
// of sync/exchange/code_exchange.h, read off the codecs themselves. Private to the simulator.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "trireme/cluster/profile/profile.h"
#include "trireme/collective/schedule.h"
#include "trireme/compress/rules.h"

namespace trireme::cluster {

// One collective of an exchange, and what each rank computes before it.
struct Leg {
  Collective what = Collective::all_reduce;
  std::size_t count = 0;  // as Call::count
  std::size_t element_bytes = 4;
  double before_s = 0;
};
struct Legs {
  std::vector<Leg> legs;
  double after_s = 0;   // computed by each rank in the end
  double coding_s = 0;  // of all that is computed, by each rank
};

// One all-reduce of f32.
Legs plain_legs(std::size_t elements);

class Coding {
 public:
  // Throws ConfigError for rules that cannot be.
  Coding(const Profile& profile, std::string_view codec, std::string_view rules, int ranks, std::uint64_t seed);

  bool none() const { return rules_.none(); }
  std::string text() const { return rules_.text(); }
  // Of the gradients [begin, end) of the profile, together.
  Legs legs(std::size_t begin, std::size_t end) const;
  Legs whole() const { return legs(0, tensors_.size()); }
  // Of one tensor of so many bytes, near a square: what the runtime rehearses before it plans buckets.
  Legs rehearsal(std::size_t bytes) const;

  // A message from one to another, as to a parameter server: bytes of all tensors, and seconds.
  struct Message {
    double bytes = 0, encode_s = 0, decode_s = 0;
  };
  Message message() const;

 private:
  struct Coded {
    std::size_t elements = 0;
    bool none = true;
    const compress::Choice* choice = nullptr;
    std::shared_ptr<compress::Codec> codec, again;  // shared: of one kind and setting all sizes can be asked for
    double code_bytes = 0;                          // of a message of the whole tensor
    double encode_s = 0, decode_s = 0;              // of the whole tensor
    double again_encode_s = 0, again_decode_s = 0;  // of the whole tensor, by the codec of merged shares
  };
  Coded coded(const compress::Tensor& tensor) const;
  Legs legs_of(std::span<const Coded> tensors) const;
  void sum(std::span<const Coded> tensors, DType type, Legs& out) const;
  void scatter(std::span<const Coded> tensors, Legs& out) const;
  void gather(std::span<const Coded> tensors, Legs& out) const;

  const Profile& profile_;
  const compress::Rules rules_;
  const int ranks_;
  const std::uint64_t seed_;
  std::vector<Coded> tensors_;
};

}  // namespace trireme::cluster
