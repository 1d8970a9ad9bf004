// The one thread of a server: everything but what is said to be shared belongs to it.
#pragma once
#include <atomic>
#include <list>
#include <set>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/ps/memory.h"
#include "trireme/ps/server/checkpoint.h"
#include "trireme/ps/server/server.h"
#include "trireme/ps/server/server_codes.h"
#include "trireme/ps/server/store.h"
#include "trireme/ps/wire/endpoint.h"
#include "trireme/ps/wire/link.h"

namespace trireme::ps {

class Server::Impl {
 public:
  explicit Impl(ServerOptions options);
  ~Impl();
  const std::string& name() const { return options_.name; }
  void leave(Deadline deadline);
  bool wait(Deadline deadline);

 private:
  // Whom a link leads to.
  struct Caller {
    Role role = Role::worker_of_server;
    std::uint32_t id = kNobody;
    std::shared_ptr<MappedMemory> memory;
  };
  // A push or init that is answered when all of its shards are kept by their whole chains.
  struct PendingAnswer {
    struct Part {
      std::uint32_t shard;
      std::uint64_t record;
      bool until_used;
    };
    std::uint64_t link, request;
    WorkerId worker;
    std::uint64_t clock, staleness;
    std::vector<Part> parts;
  };
  struct PendingPull {
    std::uint64_t link, request;
    PullBody body;
    Clock::time_point since;
    std::vector<bool> given;  // parts that are in the worker's memory already
  };

  // server.cpp: the life of the server, and the coordinator.
  void start();
  void restore();
  void run(std::stop_token stop);
  Sink place(Link& link, const Header& header, std::string_view body);
  void frame(Link& link, Frame& frame);
  void closed(Link& link, const std::string& why);
  Duration tick();
  void obey(Link& link, Frame& frame);
  void hello(Link& link, Frame& frame);
  void from_coordinator(Frame& frame);
  void set_view(View view);
  void check_restored(const View& view);
  void save();
  void end(std::exception_ptr error = nullptr);
  Header header(Kind kind, std::uint64_t request = 0) const;

  // server_work.cpp: what workers ask for.
  void init(Link& link, Frame& frame);
  void push(Link& link, Frame& frame);
  // The floats of a payload, where it has nothing else.
  static std::span<const float> floats_of(const Frame& frame);
  struct Arrived;
  std::vector<Arrived> arrived(const PushBody& body, const Caller& caller, const Frame& frame);
  void pull(Link& link, Frame& frame);
  // Makes the updates that became visible, then answers whatever can be. Frames only take note of what is asked, so
  // that pulls that come together with the last push of a round are served in the same pass over the weights.
  void answer_all();
  void note_asked();
  bool more_comes() const;
  void answer_pushes();
  std::list<PendingPull> take_ready_pulls();
  void settle_for(std::list<PendingPull>& pulls);
  void give_values(const PendingPull& pull);
  void reject(std::uint64_t link, std::uint64_t request, Refusal refusal);

  // server_chain.cpp: the replicas.
  void forward(Held& held, const Change& change);
  void supply_successors();
  void supply(Held& held, Link& link);
  Link* link_to(ServerId server);
  void snapshot(Link& link, Frame& frame);
  void record(Link& link, Frame& frame);
  void stored(Link& link, Frame& frame);
  void tell_stored(Held& held);
  void lose_link(std::uint64_t link);

  ServerOptions options_;
  const net::Session session_;
  std::string unix_name_, tcp_;
  Loop loop_;
  std::uint64_t coordinator_ = 0;  // its link
  ServerId id_ = kNobody;
  double lease_s_ = 2;
  Clock::time_point last_beat_{}, last_save_ = Clock::now(), next_call_{};
  Store store_;
  ServerCodes codes_;
  std::map<std::uint64_t, Caller> callers_;  // by link
  std::map<ServerId, std::uint64_t> successor_links_;
  std::list<std::pair<std::uint64_t, Frame>> early_;  // by link: of a view that has not come here yet
  std::list<PendingAnswer> pushes_;
  std::list<PendingPull> pulls_;
  CheckpointWriter writer_;
  bool leave_said_ = false;
  bool something_asked_ = false;
  Clock::time_point asked_since_{};
  std::set<std::uint64_t> pulls_to_come_;  // links whose last push said that a pull follows it
  std::uint64_t restored_job_ = 0;
  bool checked_restored_ = false;

  // Shared with the threads that wait.
  std::atomic<bool> wants_leave_{false};
  Mutex mutex_;
  CondVar changed_;
  bool welcomed_ TRIREME_GUARDED_BY(mutex_) = false;
  bool ended_ TRIREME_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ TRIREME_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace trireme::ps
