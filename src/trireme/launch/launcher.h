// The launcher's own process: one loop over its workers' output, the guardian, signals and the other nodes.
#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/launch/emulate/hosts.h"
#include "trireme/launch/event_loop.h"
#include "trireme/launch/guardian.h"
#include "trireme/launch/job_key.h"
#include "trireme/launch/launch.h"
#include "trireme/launch/node_link.h"
#include "trireme/launch/output.h"
#include "trireme/launch/signals.h"
#include "trireme/launch/stdin_relay.h"

namespace trireme::launch {

// Lets this process hold the pipes of many workers; the limit is put back at the end.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(int workers);
  ~OpenFilesLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
};

class Launcher {
 public:
  explicit Launcher(const LaunchSpec& spec);
  LaunchResult run();

 private:
  struct Worker {
    bool running = false;
    pid_t pid = -1;
    int status = 0;
    int stopped_by = 0;         // a signal; 0: it runs
    std::uint64_t turns = 0;    // how often it was stopped or continued
    Clock::time_point since{};  // when it was stopped
    bool given_up = false;      // and killed for it
  };

  void place_alone();
  // At the first of emulated hosts, if there are any, else here.
  net::Fd listen_for_workers(const net::Address& address) const;
  void join_nodes();
  NodeEvents node_events();
  void start();
  // Both open what a worker gets as 0, 1 and 2; `theirs` is closed here once the workers have it.
  void connect_output(int rank, WorkerStart& worker, std::vector<net::Fd>& theirs);
  int stdin_for(int rank, std::vector<net::Fd>& theirs);

  void on_guardian();
  void keep_guardian_going();
  void on_worker_ended(const GuardianEvent& event);
  void on_all_ended();
  void on_stopped(const GuardianEvent& event);
  void watch_stopped(int local_rank);
  void on_stopped_too_long(int local_rank);
  JobFailure stopped_failure(int local_rank) const;
  void on_signal(int number, bool from_here);
  void on_output_broken(int error);

  // A failure found here: node 0 and a lone node decide what is told, after a moment in which a better cause may come.
  void consider(const JobFailure& failure, const Worker* worker = nullptr);
  void decide();
  // The decision, ours or node 0's: ends the job.
  void stop_because(const JobFailure& failure);
  std::string name_of(int local_rank) const;
  JobFailure failure_of(int local_rank, const GuardianEvent& event) const;
  std::string interrupted_text() const;
  void say(std::string_view line);
  bool over() const;
  LaunchResult result() const;

  const LaunchSpec& spec_;
  const std::string program_;
  const std::string host_;
  OpenFilesLimit open_files_;
  SignalCatcher signals_;
  EventLoop loop_;
  OutputMux output_;
  JobKey key_;
  std::unique_ptr<EmulatedHosts> hosts_;  // if the job asks for them
  net::Fd rendezvous_;                    // rank 0 inherits it
  std::unique_ptr<NodeLink> link_;
  std::unique_ptr<StdinRelay> stdin_;
  std::unique_ptr<Guardian> guardian_;
  Placement placement_;
  std::vector<Worker> workers_;
  int running_ = 0;

  std::optional<JobFailure> candidate_;  // considered, not decided
  int culprit_ = -1;                     // its local rank, if it is one of ours
  std::optional<JobFailure> failure_;
  int stopped_ = 0;  // workers that ran when the job was stopped
  int interrupted_by_ = 0;
  Clock::time_point interrupted_at_{};
  bool interruption_ended_workers_ = false;
  bool suspended_ = false;  // the workers stand still because we were told to stop them
  bool ended_ = false;      // nothing runs here any more
  bool finished_ = false;   // nor anywhere
};

}  // namespace trireme::launch
