// What travels between workers, servers and the coordinator of a parameter server: a header of 48 bytes, a body of
// packed fields, then a payload of raw floats. Little-endian.
//
//   offset  0 magic "TPS\n"   4 version   5 kind   6 flags   8 bytes of the body   12 checksum of the body
//          16 bytes of the payload   24 request   32 epoch of the sender's view   40 unused   44 checksum of the 44
//          before; checksums are the lower 32 bits of XXH3
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "trireme/base/error.h"

namespace trireme::ps {

static_assert(std::endian::native == std::endian::little, "frames are little-endian on the wire");

enum class Kind : std::uint8_t {
  // With the coordinator.
  hello = 1,    // who the sender is: the first frame on every connection
  welcome,      // the member's id
  refuse,       // why not, as text; the connection ends
  beat,         // the sender lives; answered by another
  view,         // who is in the job and who keeps which shard
  declare,      // a worker's tensors and options
  initialised,  // every shard has its first values
  synced,       // a server's successor has a shard whole
  sum,          // a worker's numbers, to be added over all workers
  ticket,       // the next number of a counter, please
  stop,         // the job shall end
  leave,        // the sender wants to go; it is sent back when it may
  answer,       // to sum and ticket
  // Between workers and servers.
  init,    // first values of shards
  push,    // gradients
  pull,    // weights, please
  done,    // an init or push is kept by every replica
  values,  // weights: the answer to a pull
  reject,  // not now or not here
  // Along a chain of servers.
  snapshot,  // a whole shard
  record,    // one change of a shard
  stored,    // how far the rest of the chain has it
};
inline constexpr std::uint8_t kLastKind = static_cast<std::uint8_t>(Kind::stored);

struct Header {
  static constexpr std::uint32_t kMagic = 0x0a535054;
  static constexpr std::uint8_t kVersion = 4;
  static constexpr std::uint64_t kLongestPayload = std::uint64_t{1} << 40;

  std::uint32_t magic = kMagic;
  std::uint8_t version = kVersion;
  Kind kind = Kind::beat;
  std::uint16_t flags = 0;
  std::uint32_t body = 0;
  std::uint32_t body_sum = 0;
  std::uint64_t payload = 0;
  std::uint64_t request = 0;
  std::uint64_t epoch = 0;
  std::uint32_t unused = 0;
  std::uint32_t header_sum = 0;
};
static_assert(sizeof(Header) == 48);

// The longest body of a kind; a stranger's first frame is a hello.
std::uint32_t longest_body(Kind kind);
// Fills in both checksums and the body's length.
void seal(Header& header, std::string_view body);
// Empty when the header is one of ours, else what is wrong with it.
std::string_view fault_of(const Header& header);

// Fields one after the other: numbers as they are, texts and lists with their length before them.
class Packer {
 public:
  template <typename T>
  Packer& put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packer& count(std::size_t n) { return put(static_cast<std::uint32_t>(n)); }
  Packer& text(std::string_view value) {
    count(value.size());
    bytes_.append(value);
    return *this;
  }
  template <typename T>
  Packer& list(const std::vector<T>& values) {
    count(values.size());
    for (T value : values) put(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Throws ProtocolError when a field is not there.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}
  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  bool flag() { return get<std::uint8_t>() != 0; }
  // The length of a list whose entries take at least `each` bytes: never more than are left.
  std::size_t count(std::size_t each);
  std::string text() { return std::string(take(count(1))); }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> values(count(sizeof(T)));
    for (T& value : values) value = get<T>();
    return values;
  }
  std::size_t left() const { return rest_.size(); }
  // Throws when bytes are left over.
  void end() const;

 private:
  std::string_view take(std::size_t bytes);
  std::string_view rest_;
};

// Where a payload goes. `keep` holds the memory.
struct Sink {
  std::vector<std::span<std::byte>> parts;
  std::shared_ptr<void> keep;
  std::size_t bytes() const;
};

struct Frame {
  Header header;
  std::string body;
  Sink payload;
};

// Takes frames out of a stream of bytes. Memory for a body is taken once its header is checked; where a payload goes is
// asked once its body is checked, and must be exactly as long.
class Parser {
 public:
  // May throw ProtocolError.
  using Place = std::function<Sink(const Header&, std::string_view body)>;
  explicit Parser(Place place) : place_(std::move(place)) {}

  // Where the next bytes of the stream go, at least one.
  std::span<std::byte> space();
  // Says how many were put there; true when a frame is complete. Throws ProtocolError, after which the stream is dead.
  bool filled(std::size_t bytes);
  // The complete frame; the parser goes on to the next.
  Frame take();

 private:
  bool advance();

  const Place place_;
  enum class State { header, body, payload, complete } state_ = State::header;
  std::size_t filled_ = 0;  // of the header, body or payload part
  std::size_t part_ = 0;
  Frame frame_;
};

}  // namespace trireme::ps
