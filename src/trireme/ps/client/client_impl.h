// A worker's end. One thread owns the connections; callers queue operations and wait. Invariant: of one shard, no
// operation is sent before every earlier one was; so a server sees a worker's pushes in order, whatever is sent again.
#pragma once
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

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
    std::lock_guard lock(mutex_);
    return view_;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All of the following are guarded by mutex_.
  View view_;
  std::uint64_t pushes_ = 0, clock_ = 0;
  bool late_ = false;
  std::uint64_t bytes_moved_ = 0;
  bool declared_ = false;
  std::shared_ptr<WorkerCodes> codes_;  // the pointer; its encode() is guarded by encoding_, its take() is the thread's
  WorkerMemory memory_;                 // safe by itself
  std::mutex encoding_;                 // taken before mutex_

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
  void from_coordinator(Frame& frame);
  void from_server(Frame& frame);
  void take_values(Operation& operation, Frame& frame);
  void take_differences(Operation& operation, const ValuesBody& body, const Frame& frame);
  void set_view(View view);
  void fail(const std::string& why);
  // With mutex_ held.
  void pump();
  void take_back(std::uint64_t link);
  void hang_up(std::uint64_t link);
  void drop_given_up();
  Operation* find(std::uint64_t id);
  void finish(Operation& operation, const std::vector<std::uint32_t>& shards);
  void throw_if_failed() const;
  std::string describe_wait(const Operation& operation) const;
  Header header(Kind kind, std::uint64_t request = 0) const;
  // client_send.cpp, with mutex_ held.
  Link* link_to(ServerId server);
  void send(Operation& operation, ServerId server, const std::vector<std::uint32_t>& shards);
  void send_push(Operation& operation, Link& link, std::uint64_t request, const std::vector<std::uint32_t>& shards);
  void send_pull(Operation& operation, Link& link, std::uint64_t request, const std::vector<std::uint32_t>& shards);

  ClientOptions options_;
  WorkerId id_ = kNobody;  // constant once welcomed
  double lease_s_ = 2;
  Loop loop_;
  // The thread's alone.
  std::uint64_t coordinator_ = 0;
  std::map<ServerId, std::uint64_t> server_links_;
  Clock::time_point last_beat_{}, next_call_{};
  // Guarded by mutex_.
  bool welcomed_ = false, left_ = false;
  bool finished_ = false;  // an operation was, of which nobody was told yet
  std::string failure_;
  std::list<Operation> operations_;  // oldest first; until they are waited for
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Request> requests_;
  std::map<std::uint64_t, Call> calls_;
  std::vector<std::pair<Header, std::string>> to_coordinator_;
  std::vector<std::uint64_t> read_version_, read_applied_;  // by shard

  std::jthread thread_;
};

}  // namespace trireme::ps
