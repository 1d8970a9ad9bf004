// Ranks as real processes of this host, for what threads cannot show: death, stopping, separate address spaces.
#pragma once
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/net/memory/shm.h"

namespace trireme::test {

// What became of one rank.
struct Outcome {
  std::string error;  // what() of what it threw; empty if nothing
  int status = 0;     // as waitpid gives it
  double seconds = 0;
};

class Processes {
 public:
  using Body = std::function<void(Communicator&)>;
  using Connect = std::function<std::unique_ptr<net::Transport>(int rank, int ranks)>;

  // Every rank connects over `connect`, then runs `body`.
  Processes(int ranks, const Connect& connect, const Options& options, const Body& body) {
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      if (pipe(ends) != 0) std::abort();
      const pid_t pid = fork();
      if (pid == 0) {
        close(ends[0]);
        run_rank(ends[1], [&] {
          auto comm = join_world(connect(rank, ranks), options);
          body(comm);
        });
      }
      close(ends[1]);
      pids_.push_back(pid);
      reports_.push_back(ends[0]);
    }
  }
  // Over shared memory.
  Processes(int ranks, const Options& options, const Body& body) : Processes(ranks, shm(), options, body) {}

  pid_t pid(int rank) const { return pids_[rank]; }

  // Until this rank has ended; wait() still tells how.
  void wait_until_ended(int rank) const {
    siginfo_t ignored;
    waitid(P_PID, pids_[rank], &ignored, WEXITED | WNOWAIT);
  }

  // Waits for all, in the order of ranks.
  std::vector<Outcome> wait() {
    std::vector<Outcome> outcomes(pids_.size());
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
      char buffer[4096];
      for (ssize_t got; (got = read(reports_[rank], buffer, sizeof buffer)) > 0;)
        outcomes[rank].error.append(buffer, got);
      waitpid(pids_[rank], &outcomes[rank].status, 0);
      close(reports_[rank]);
      outcomes[rank].seconds = now_seconds() - started_;
    }
    return outcomes;
  }

 private:
  static Connect shm() {
    static int jobs = 0;
    auto job = std::to_string(getpid()) + "-" + std::to_string(++jobs);
    return [job](int rank, int ranks) {
      net::WorldSpec spec{.rank = rank,
                          .size = ranks,
                          .local_rank = rank,
                          .local_size = ranks,
                          .launcher = "test",
                          .job = job,
                          .rendezvous = ""};
      return net::connect_shm(spec, {.timeout_s = 20});
    };
  }

  [[noreturn]] static void run_rank(int report, const std::function<void()>& body) {
    std::string error;
    try {
      body();
    } catch (const std::exception& e) {
      error = e.what();
    }
    if (write(report, error.data(), error.size()) < 0) _exit(1);
    close(report);
    _exit(0);
  }

  std::vector<pid_t> pids_;
  std::vector<int> reports_;
  double started_ = now_seconds();
};

}  // namespace trireme::test
