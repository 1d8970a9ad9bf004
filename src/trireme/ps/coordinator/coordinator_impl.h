// The one thread of a coordinator: everything but the copy of the view belongs to it.
#pragma once
#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <thread>

#include "trireme/base/mutex.h"
#include "trireme/ps/coordinator/coordinator.h"
#include "trireme/ps/coordinator/meeting.h"
#include "trireme/ps/coordinator/placement.h"
#include "trireme/ps/wire/endpoint.h"
#include "trireme/ps/wire/link.h"

namespace trireme::ps {

class Coordinator::Impl {
 public:
  explicit Impl(CoordinatorOptions options);
  ~Impl();
  const std::string& endpoint() const { return options_.at; }
  View view() const;
  bool whole() const { return whole_; }

 private:
  struct Member {
    Role role = Role::worker;
    std::uint32_t id = kNobody;
    Clock::time_point heard = Clock::now();
  };
  struct ServerState {
    ServerInfo info;
    std::uint64_t link = 0;
    bool leaving = false;
    bool keeps_files = false;
    std::vector<std::uint32_t> kept;
  };
  struct WorkerMember {
    std::uint64_t link = 0;
    bool initial = false;
    bool declared = false;
    bool sums = false;  // is waited for in sums: was there from the start, or has brought some numbers
  };

  void frame(Link& link, Frame& frame);
  void closed(Link& link, const std::string& why);
  Duration tick();
  void hello(Link& link, Unpacker& from);
  void add_worker(Link& link, Unpacker& from);
  void seat(Link& link, std::int32_t wish);
  void add_server(Link& link, Unpacker& from);
  void declare(Link& link, WorkerId worker, Unpacker& from);
  void initialised(WorkerId worker);
  void leave(Link& link, const Member& member);
  void remove(const Member& member, const std::string& why);
  void refuse(Link& link, const std::string& why);
  // Decides what follows from a change, and publishes a view if there is something new.
  void settle(bool changed);
  void begin_job();
  void judge_losses();
  void publish();
  void deliver(std::vector<Meeting::Answer> answers);
  std::vector<WorkerId> summing_workers() const;

  CoordinatorOptions options_;
  const net::Session session_;
  Loop loop_;
  std::map<std::uint64_t, Member> members_;  // by link
  std::map<ServerId, ServerState> servers_;
  std::map<WorkerId, WorkerMember> workers_;
  std::vector<std::uint64_t> late_workers_;  // links of those that wait until the job has begun
  ServerId next_server_ = 0;
  WorkerId next_worker_ = 0;
  std::optional<JobSpec> job_;
  Placement placement_;
  Meeting meeting_;
  View view_;
  std::string last_death_;
  bool files_may_return_ = false;
  bool initialised_ = false;
  std::optional<Deadline> restart_;
  Clock::time_point last_tick_ = Clock::now();

  mutable Mutex mutex_;
  View published_ TRIREME_GUARDED_BY(mutex_);
  std::atomic<bool> whole_{false};

  std::jthread thread_;
};

}  // namespace trireme::ps
