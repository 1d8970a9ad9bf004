// The public face of collectives. A Communicator is one rank's place in a group of ranks; its methods are called by
// every rank of the group, in the same order, from one thread at a time.
//
// Every call has a deadline and either succeeds on all ranks or fails with an Error that names the rank and the call:
// Mismatch (ranks called different things), PeerLost, Timeout, Aborted (another rank gave up; says why). After a
// failure the communicator is unusable. Wrong arguments are a ConfigError.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/base/dtype.h"

namespace trireme {

// 16-bit floats as they lie in memory.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <typename T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "an element is float, double, Half, BFloat16, (u)int8_t, int32_t or int64_t");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<Half> = DType::f16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;

// Elements in memory, not owned: made from a span or vector of elements, or from a pointer, count and type.
struct View {
  View() = default;
  View(void* memory, std::size_t elements, DType type) : data(memory), count(elements), dtype(type) {}
  template <typename T>
  View(std::span<T> span) : View(span.data(), span.size(), dtype_of<T>) {}
  template <typename T>
  View(std::vector<T>& vector) : View(vector.data(), vector.size(), dtype_of<T>) {}
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
};
struct ConstView {
  ConstView() = default;
  ConstView(const void* memory, std::size_t elements, DType type) : data(memory), count(elements), dtype(type) {}
  ConstView(const View& view) : data(view.data), count(view.count), dtype(view.dtype) {}
  template <typename T>
  ConstView(std::span<T> span) : ConstView(span.data(), span.size(), dtype_of<std::remove_const_t<T>>) {}
  template <typename T>
  ConstView(const std::vector<T>& vector) : ConstView(vector.data(), vector.size(), dtype_of<T>) {}
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
};

inline constexpr int kMostLanes = 64;

struct Options {
  double timeout_s = 60;           // of every call; TRIREME_TIMEOUT
  std::string algorithm = "auto";  // for the collectives that have it; TRIREME_ALGORITHM
  bool deterministic = false;      // bit-identical sums whatever the algorithm, transport or run; TRIREME_DETERMINISTIC
  int lanes = 1;                   // independent channels used in turn by started calls; TRIREME_LANES
};
// The defaults above, changed by the environment. Throws ConfigError naming the variable.
Options options_from_environment();

// A started call. Its buffers must stay valid until it is done. A value: copy it, drop it; the call goes on.
class Work {
 public:
  Work() = default;
  // Until done, at the latest at the call's own deadline. Throws what the call threw.
  void wait();
  // False if it is not done within `longest`.
  bool wait_for(std::chrono::nanoseconds longest);
  bool done() const;
  // When a collective that is done ran, in now_seconds(): it may have queued before. Zeros once another 1,000 calls
  // have followed it, and for point to point.
  struct Times {
    double begin = 0, end = 0;
  };
  Times times() const;

 private:
  friend class Communicator;
  struct State;
  std::shared_ptr<State> state_;  // shared: a Work may outlive its communicator
  std::uint64_t ticket_ = 0;
};

struct Request;

// The collectives, once for callers that wait and once for callers that do not. `Result` is void or Work.
// In place: pass the same memory twice, or use the short form.
template <typename Derived, typename Result>
class Collectives {
 public:
  Result all_reduce(View data, Op op = Op::sum) { return all_reduce(data, data, op); }
  Result all_reduce(ConstView in, View out, Op op = Op::sum);
  // `out` counts at the root only.
  Result reduce(ConstView in, View out, Op op = Op::sum, int root = 0);
  Result broadcast(View data, int root = 0);
  // `in` counts at the root only: one block per rank, each the size of `out`.
  Result scatter(ConstView in, View out, int root = 0);
  // `out` counts at the root only: one block per rank, each the size of `in`.
  Result gather(ConstView in, View out, int root = 0);
  Result all_gather(ConstView in, View out);
  Result reduce_scatter(ConstView in, View out, Op op = Op::sum);
  // Not in place.
  Result all_to_all(ConstView in, View out);
  Result barrier();

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

class Communicator : public Collectives<Communicator, void> {
 public:
  int rank() const;
  int size() const;
  std::string_view transport() const;

  // The same calls, returning at once. comm.async().all_reduce(data).wait()
  class Async : public Collectives<Async, Work> {
   private:
    friend class Communicator;
    friend class Collectives<Async, Work>;
    explicit Async(Communicator& comm) : comm_(comm) {}
    Work issue(const Request& request) { return comm_.start(request); }
    int rank() const { return comm_.rank(); }
    int size() const { return comm_.size(); }
    Communicator& comm_;
  };
  Async async() { return Async(*this); }

  // Point to point. Messages between two ranks match in the order sent; differing tags or sizes are a Mismatch.
  void send(ConstView data, int to, std::uint64_t tag = 0);
  void recv(View data, int from, std::uint64_t tag = 0);
  Work send_async(ConstView data, int to, std::uint64_t tag = 0);
  Work recv_async(View data, int from, std::uint64_t tag = 0);

  // The ranks of one colour become a group, ordered by key, then by rank here. Collective; none for a negative colour.
  std::optional<Communicator> split(int color, int key = 0);

  // Memory that peers on this host read directly: collectives on it move no copies. Freed with the last reference,
  // which may outlive the communicator.
  template <typename T>
  std::shared_ptr<T[]> allocate(std::size_t count) {
    auto memory = allocate_bytes(count * sizeof(T));
    return {memory, reinterpret_cast<T*>(memory.get())};
  }
  std::shared_ptr<std::byte[]> allocate_bytes(std::size_t bytes);

  // An algorithm's name, or "auto". The same on every rank.
  void set_algorithm(std::string_view collective, std::string_view algorithm);
  // What this rank has sent on all lanes, payload only. Of calls in shared memory, where nothing is sent: the least
  // that any algorithm would have sent.
  std::uint64_t bytes_sent() const;

  // Tells every rank why this one gives up; their waits throw Aborted.
  void abort(std::string_view why);

  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  // Of this rank alone, and waits for started calls only: what peers that are still in the last call read of this rank
  // stays until they have ended theirs.
  ~Communicator();

  struct Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  Impl& impl() { return *impl_; }

 private:
  friend class Collectives<Communicator, void>;
  void issue(const Request& request);
  Work start(const Request& request);

  std::unique_ptr<Impl> impl_;
};

// Joins the world that a launcher (trireme run, torchrun, mpirun, srun) describes in the environment; with none, a
// world of one. Collective over that world.
Communicator init(const Options& options = options_from_environment());

// Runs `body` as every rank of a world of threads and waits for all; rethrows the first error.
void run_threads(int ranks, const std::function<void(Communicator&)>& body,
                 const Options& options = options_from_environment());

}  // namespace trireme
