// A codec makes a tensor small: a gradient, or the difference of two models. One object per tensor, so that what it
// remembers is keyed by the tensor's elements, whatever bucket they travel in; one file per codec, one line in the list
// codecs/members.inc.
//
// Encoded numbers of several workers become their mean in one of three ways, the codec's Aggregation:
//
//   sum      the workers' terms are added on the way, as they are: an all-reduce per round
//   scatter  a tensor is cut into one share per worker; a share's messages go to its owner, who merges them, encodes
//            the result again and sends it to all
//   gather   everybody's message to everybody, who adds them up in the order of ranks
//
// encode, decode and add work for every codec, whatever its aggregation: a message from one to another, as to a
// parameter server. A codec is used by one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/dtype.h"
#include "trireme/base/error.h"

namespace trireme::compress {

// What a codec is made for.
struct Tensor {
  std::string name;
  std::size_t count = 0;  // elements
  std::size_t rows = 1;   // as a matrix, row by row: its first dimension; divides the count
  int number = 0;         // in the model, the same on every worker
};

struct Context {
  std::uint64_t seed = 1;            // the job's, the same on every worker
  int rank = 0, workers = 1;         // whose messages these are, of how many
  std::int64_t steps_per_epoch = 1;  // encodes of a tensor; 0: nobody said
  double momentum = 0;               // of the optimizer, for codecs that take it over
};

enum class Aggregation { sum, scatter, gather };

// A number that is no number was to be encoded.
class NotFinite : public DataError {
 public:
  explicit NotFinite(std::size_t element);  // "element 7 is not finite"
  std::size_t element() const { return element_; }

 private:
  std::size_t element_;
};

class StateWriter;
class StateReader;

class Codec {
 public:
  virtual ~Codec() = default;
  virtual Aggregation aggregation() const = 0;

  // ---- Messages ----

  // The longest message for so many elements: at most dense, 4 bytes each, and kHeader. With scatter every
  // message is exactly so long.
  static constexpr std::size_t kHeader = 16;
  virtual std::size_t most_bytes(std::size_t count) const = 0;
  // Encodes x, the elements of the tensor from `offset` on, and returns the bytes written, of any alignment. `left`:
  // null, or where x minus what the message says is written; may be x itself. Throws NotFinite.
  virtual std::size_t encode(std::size_t offset, std::span<const float> x, std::byte* message, float* left) = 0;
  // Whether the messages of pieces, each a multiple of block() elements but for the last, are the message of the whole
  // when put one after another.
  virtual bool joins() const { return false; }
  // out ← what a message for out.size() elements says. Throws ProtocolError, for whatever the message holds; reads and
  // writes nothing but these two.
  virtual void decode(std::span<const std::byte> message, std::span<float> out) const = 0;
  // out ← out + factor · what a message says.
  virtual void add(std::span<const std::byte> message, float factor, std::span<float> out) const = 0;

  // ---- Aggregation by scatter ----

  // Shares begin at multiples of so many elements.
  virtual std::size_t block() const { return 1; }
  // out ← factor · what all workers' messages of a share amount to.
  virtual void merge(std::span<const std::span<const std::byte>> messages, float factor, std::span<float> out) const;

  // ---- Aggregation by sum ----

  // Every worker gives terms of the whole tensor and takes their mean, round after round; x is the same in all of them.
  virtual int rounds() const { return 1; }
  virtual DType term_type() const { return DType::f32; }  // or f16, bf16: added in f32
  virtual std::size_t terms(int round) const;
  // Throws NotFinite.
  virtual void give(int round, std::span<const float> x, std::byte* terms);
  // The last round writes out.
  virtual void take(int round, const std::byte* means, std::span<float> out);
  // x ← x − what this worker's terms stood for, after the last round.
  virtual void leave(std::span<float> x) const;

  // ---- Of those that feed back errors ----

  // What was not sent yet, by element; empty where nothing is kept.
  virtual std::span<const float> carried() const { return {}; }

  // ---- Of those that remember something: for a run that is stopped and goes on (state.h) ----

  // By element of the tensor, live. Names are the same for all codecs: "error" is what was not sent yet.
  struct ByElement {
    std::string_view name;
    std::span<float> values;
  };
  virtual std::vector<ByElement> by_element() { return {}; }
  // The rest, and back: recall() reads what keep() wrote, to its end. Throws DataError; nothing has changed then.
  virtual void keep(StateWriter& to) const;
  virtual void recall(StateReader& from);
};

}  // namespace trireme::compress
