// Runs schedules on one channel: binds buffers, moves messages or meets on the board, keeps deadlines, and turns every
// failure into one error on every rank. Segmentation and overlap live here, once for all algorithms.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/collective/reduce/reduce.h"
#include "trireme/collective/reduce/store_choice.h"
#include "trireme/collective/run/call_plan.h"
#include "trireme/net/memory/board.h"
#include "trireme/net/transport.h"
#include "trireme/net/watch.h"

namespace trireme {

// How to run a call; the same on every rank but for the buffers.
struct Request {
  Collective what = Collective::barrier;
  DType dtype = DType::f32;
  Op op = Op::sum;
  int root = 0;
  std::size_t count = 0;
  const void* input = nullptr;
  void* output = nullptr;
  const Algorithm* algorithm = nullptr;
  // Tuning: bytes of a vector handled at a time (0: all at once), and how results are stored.
  std::size_t segment = 0;             // message algorithms
  std::size_t stage_chunk = 64 << 10;  // staged: bytes per segment
  Store store = Store::plain;          // direct folds
};

// Memory of one rank that grows as needed and is never zeroed.
class Arena {
 public:
  explicit Arena(net::Heap& heap) : heap_(heap) {}
  ~Arena() { heap_.release(memory_); }
  Arena(const Arena&) = delete;
  std::byte* at_least(std::size_t bytes);
  // Gives the memory, or null, to the caller.
  std::byte* take() {
    bytes_ = 0;
    return std::exchange(memory_, nullptr);
  }

 private:
  net::Heap& heap_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// One per channel; used by one thread at a time.
class Executor {
 public:
  Executor(net::Transport& transport, std::unique_ptr<net::Channel> channel);
  // Peers may still be in the last call, and read the stage: it stays until they have ended too.
  ~Executor();

  // Collective. Throws Mismatch, PeerLost, Timeout, Aborted; afterwards the executor is broken and says so.
  void run(const Request& request, Duration timeout, const net::Patience& patience);

  net::Channel& channel() { return *channel_; }
  // Payload sent by this rank; of calls in shared memory, where nothing is sent, the least that any algorithm sends.
  // From any thread.
  std::uint64_t bytes_sent() const { return channel_->counters().bytes_sent + shared_bytes_; }

 private:
  // One call under way. A small call takes a few hundred nanoseconds, so what it does not use is not set.
  struct Run {
    Run(const Request& what, const net::CallId& as, const net::Patience& wait, const net::Watch& with)
        : request(what), call(as), patience(wait), watch(with), element(size_of(what.dtype)) {}
    const Request& request;
    const net::CallId& call;
    const net::Patience& patience;
    net::Watch watch;
    std::size_t element;  // bytes
    const CallPlan* plan;
    // Of the segment at hand: where each of my buffers begins (by Buffer), and how far into a peer's input or output,
    // and into its stage, the segment lies.
    std::byte* base[4];
    std::size_t shift;
    std::size_t stage_shift;
    Store stage_store = Store::plain;
  };
  // What follows from a request alone. Calls mostly repeat, and making this anew takes as long as a small fold.
  struct Shape {
    const Algorithm* algorithm = nullptr;
    Op op = Op::sum;
    net::CallId call{};        // but for the sequence number
    std::uint64_t least_sent;  // bytes that this rank sends, whatever the algorithm
    bool fits_posts;
    Fold fold;
    Reduce reduce;
  };
  // Which of all calls through stages, and of those of its class.
  struct StagedCall {
    std::uint32_t number = 0;
    StoreChoice* choice = nullptr;
    std::uint32_t turn = 0;
    bool tries() const { return choice != nullptr && StoreChoice::is_trial(turn); }
    Store store() const { return choice->store(turn); }
  };
  struct PlanKey {
    const Algorithm* algorithm;
    std::size_t count, segment;
    int root;
    bool operator==(const PlanKey&) const = default;
  };
  struct PlanHash {
    std::size_t operator()(const PlanKey& key) const;
  };

  const CallPlan& plan_for(const Request& request, const Algorithm& algorithm, std::size_t segment);
  void bind_shape(const Request& request);
  void dispatch(Run& run);
  void run_messages(Run& run);
  void run_in_posts(Run& run);
  void run_direct(Run& run);
  void run_staged(Run& run);
  void begin_staged(Collective what, std::size_t bytes);
  void run_staged_rounds(Run& run);

  void meet(Run& run);
  bool peers_readable(const Run& run) const;
  void bind_peers();
  void sync(Run& run);

  void bind_segment(Run& run, int segment) const;
  std::byte* place(const Run& run, const Slice& slice) const;
  std::byte* place_of(const Run& run, int rank, const Slice& slice) const;
  void local_steps(Run& run, std::span<const Step> steps);
  void shared_steps(Run& run, std::span<const Step> steps);
  void fold_from_all(Run& run, const Step& step);
  void post_messages(Run& run, std::span<const Step> steps, std::size_t& ticket);
  void await_tickets(Run& run, std::size_t tickets);

  // Constant after construction.
  net::Transport& transport_;
  std::unique_ptr<net::Channel> channel_;
  net::Board* board_;
  const int rank_, ranks_;
  // By collective: what private buffers take instead of direct, long and short ones.
  std::array<const Algorithm*, kCollectives.size()> staged_, inline_;
  std::atomic<std::uint64_t> shared_bytes_ = 0;
  // Used by the one thread.
  std::uint64_t sequence_ = 0;
  std::string broken_;  // why, once a call has failed
  std::unordered_map<PlanKey, std::unique_ptr<CallPlan>, PlanHash> plans_;
  PlanKey last_key_{};
  const CallPlan* last_plan_ = nullptr;
  Shape shape_;  // of the last call
  Arena scratch_;
  Arena stage_;
  std::array<std::array<StoreChoice, 65>, kCollectives.size()> stage_stores_;  // by collective and width of its bytes
  StagedCall staged_call_;                                                     // the last one made, or under way
  // Of the call under way: where each rank's buffers are, and room for folds and messages.
  struct Peer {
    const std::byte* input;
    std::byte* output;
    std::byte* stage;
  };
  std::vector<Peer> peers_;
  std::byte* scratch_base_ = nullptr;
  std::vector<const void*> ins_;
  std::vector<void*> outs_;
  std::vector<net::Ticket> tickets_;
};

}  // namespace trireme
