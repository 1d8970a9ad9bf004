// A worker's end. One thread owns the connections; callers queue operations and wait. Invariant: of one shard, no
// operation is sent before every earlier one was; so a server sees a worker's pushes in order, whatever is sent again.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/ps/client/client.h"
#include "trireme/ps/client/worker_codes.h"
#include "trireme/ps/memory.h"
#include "trireme/ps/wire/link.h"
#include "trireme/ps/wire/messages.h"

namespace trireme::ps {

class Client::Impl {
 public:
  explicit Impl(ClientOptions options);
  ~Impl();

  // One push, pull or init of all shards.
  struct Operation {
    enum class Kind { push, pull, look, init } kind = Kind::push;  // look: a pull of no values
    std::uint64_t id = 0;
    std::uint64_t sequence = 0, clock = 0;  // of a pull: the pushes before it
    double lr = 0;
    std::span<const float> from;  // a gradient or first values, flat; what a sparse push has of it
    std::span<float> into;
    bool patient = false;
    // Sparse: of each shard the segments, relative to it, and where its values begin.
    bool sparse = false;
    std::vector<std::vector<Segment>> segments;
    std::vector<std::size_t> value_begins;
    std::vector<float> copied;            // where the values are this operation's own
    WorkerCodes::Message encoded;         // a push of a compressed job; made once, whatever is sent again
    bool exact = true;                    // a pull of the weights themselves, not of differences
    int state = -1;                       // a pull of this part of the update's state instead
    const ServerState* states = nullptr;  // of an init

    enum class State : std::uint8_t { queued, sent, done };
    std::vector<State> shards;
    std::size_t left = 0;   // shards not done
    bool given_up = false;  // its caller does not wait any longer, and wants its memory back
    Clock::time_point not_before{};
    Outcome outcome;
    std::uint64_t minimum = 0;
  };

  WorkerId id() const { return id_; }
  void declare(const JobSpec& spec, std::span<const float> initial, Deadline deadline, const ServerState& state);
  std::uint64_t submit(Operation operation);
  std::uint64_t submit_push(Operation operation);
  // Of a sparse push: `runs` of the flat vector, in order and apart, cut where shards end. Their values are `from`.
  static void cut(Operation& operation, const Layout& layout, std::span<const Segment> runs);
  bool done(std::uint64_t id);
  Operation wait(std::uint64_t id, Deadline deadline);
  // Sends a request to the coordinator; its answer, without the mark of success.
  std::string call(Kind kind, std::string body, Deadline deadline);
  void tell(Kind kind, std::string body);
  void check_size(std::size_t count) const;
  // Null in a job without compression.
  std::shared_ptr<WorkerCodes> codes() const;
  View view() const {
    MutexLock lock(mutex_);
    return view_;
  }

  mutable Mutex mutex_;
  CondVar changed_;
  View view_ TRIREME_GUARDED_BY(mutex_);
  std::uint64_t pushes_ TRIREME_GUARDED_BY(mutex_) = 0;
  std::uint64_t clock_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool late_ TRIREME_GUARDED_BY(mutex_) = false;
  std::uint64_t bytes_moved_ TRIREME_GUARDED_BY(mutex_) = 0;
  bool declared_ TRIREME_GUARDED_BY(mutex_) = false;
  // The pointer; its encode() is guarded by encoding_, its take() is the thread's.
  std::shared_ptr<WorkerCodes> codes_ TRIREME_GUARDED_BY(mutex_);
  WorkerMemory memory_;  // safe by itself
  Mutex encoding_ TRIREME_ACQUIRED_BEFORE(mutex_);

 private:
  struct Request {
    std::uint64_t operation = 0, link = 0;
    std::vector<std::uint32_t> shards;
  };
  struct Call {
    bool done = false;
    std::string body;
  };

  // The thread's; client_io.cpp.
  Sink place(const Header& header);
  void frame(Link& link, Frame& frame);
  void closed(Link& link, const std::string& why);
  Duration tick();
  void from_coordinator(Frame& frame) TRIREME_REQUIRES(mutex_);
  void from_server(Frame& frame) TRIREME_REQUIRES(mutex_);
  void take_values(Operation& operation, Frame& frame) TRIREME_REQUIRES(mutex_);
  void take_differences(Operation& operation, const ValuesBody& body, const Frame& frame) TRIREME_REQUIRES(mutex_);
  void set_view(View view) TRIREME_REQUIRES(mutex_);
  void fail(const std::string& why) TRIREME_REQUIRES(mutex_);
  void pump() TRIREME_REQUIRES(mutex_);
  void take_back(std::uint64_t link) TRIREME_REQUIRES(mutex_);
  void hang_up(std::uint64_t link) TRIREME_REQUIRES(mutex_);
  void drop_given_up() TRIREME_REQUIRES(mutex_);
  Operation* find(std::uint64_t id) TRIREME_REQUIRES(mutex_);
  void finish(Operation& operation, const std::vector<std::uint32_t>& shards) TRIREME_REQUIRES(mutex_);
  void throw_if_failed() const TRIREME_REQUIRES(mutex_);
  std::string describe_wait(const Operation& operation) const TRIREME_REQUIRES(mutex_);
  Header header(Kind kind, std::uint64_t request = 0) const TRIREME_REQUIRES(mutex_);
  // client_send.cpp
  Link* link_to(ServerId server) TRIREME_REQUIRES(mutex_);
  void send(Operation& operation, ServerId server, const std::vector<std::uint32_t>& shards) TRIREME_REQUIRES(mutex_);
  void send_push(Operation& operation, Link& link, std::uint64_t request, const std::vector<std::uint32_t>& shards)
      TRIREME_REQUIRES(mutex_);
  void send_pull(Operation& operation, Link& link, std::uint64_t request, const std::vector<std::uint32_t>& shards)
      TRIREME_REQUIRES(mutex_);

  ClientOptions options_;
  WorkerId id_ = kNobody;  // constant once welcomed
  double lease_s_ = 2;
  Loop loop_;
  // The thread's alone.
  std::uint64_t coordinator_ = 0;
  std::map<ServerId, std::uint64_t> server_links_;
  Clock::time_point last_beat_{}, next_call_{};
  bool welcomed_ TRIREME_GUARDED_BY(mutex_) = false;
  bool left_ TRIREME_GUARDED_BY(mutex_) = false;
  bool finished_ TRIREME_GUARDED_BY(mutex_) = false;  // an operation was, of which nobody was told yet
  std::string failure_ TRIREME_GUARDED_BY(mutex_);
  std::list<Operation> operations_ TRIREME_GUARDED_BY(mutex_);  // oldest first; until they are waited for
  std::uint64_t next_id_ TRIREME_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, Request> requests_ TRIREME_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Call> calls_ TRIREME_GUARDED_BY(mutex_);
  std::vector<std::pair<Header, std::string>> to_coordinator_ TRIREME_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> read_version_ TRIREME_GUARDED_BY(mutex_);  // by shard
  std::vector<std::uint64_t> read_applied_ TRIREME_GUARDED_BY(mutex_);  // by shard

  std::jthread thread_;
};

}  // namespace trireme::ps
