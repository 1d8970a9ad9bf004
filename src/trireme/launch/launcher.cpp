#include "trireme/launch/launcher.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/launch/program.h"

namespace trireme::launch {
namespace {

constexpr auto kBetterCause = std::chrono::milliseconds(20);       // those that die together are seen within this
constexpr auto kCauseOfGivingUp = std::chrono::milliseconds(200);  // a worker gave up over another: which?
constexpr auto kNodeZeroAnswers = std::chrono::milliseconds(400);
constexpr auto kSameSignal = std::chrono::milliseconds(100);  // `timeout` and terminals send one twice
constexpr auto kAfterInterrupt = std::chrono::seconds(5);     // for the others once the first has obeyed

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// Our own exit codes for a lost peer, a timeout and another's abort (base/error.h).
bool is_consequence(int exit_code) { return exit_code == 3 || exit_code == 4 || exit_code == 6; }

}  // namespace

Launcher::Launcher(const LaunchSpec& spec)
    : spec_(spec),
      program_(find_program(spec.command.at(0))),
      host_(host_name()),
      open_files_(spec.output == Output::passthrough ? 0 : spec.workers),
      output_(loop_, spec.output, spec.capture, [this](int error) { on_output_broken(error); }),
      workers_(static_cast<std::size_t>(spec.workers)) {
  loop_.watch(signals_.fd(), EPOLLIN, [this](std::uint32_t) {
    while (int number = signals_.next()) on_signal(number, true);
  });
}

LaunchResult Launcher::run() {
  if (spec_.endpoint.empty()) {
    place_alone();
  } else {
    join_nodes();
  }
  while (!over()) loop_.step();
  return result();
}

bool Launcher::over() const {
  bool nothing_runs = ended_ || (failure_ && !guardian_);
  return nothing_runs && (failure_ || finished_) && output_.flushed() && (!link_ || link_->settled());
}

LaunchResult Launcher::result() const {
  LaunchResult result;
  if (interruption_ended_workers_ && !failure_) {
    result.exit_code = 128 + interrupted_by_;
    result.failure = interrupted_text();
  } else if (failure_) {
    result.exit_code = failure_->exit_code;
    result.failure = failure_->text;
    if (stopped_ > 0 && !result.failure.empty()) {
      result.failure += spec_.nodes > 1 ? fmt::format("; stopped the {} running here", stopped_)
                                        : fmt::format("; stopped the other {}", stopped_);
    }
  }
  if (culprit_ >= 0) {
    result.rank = placement_.first_rank + culprit_;
    result.pid = workers_[static_cast<std::size_t>(culprit_)].pid;
    result.wait_status = workers_[static_cast<std::size_t>(culprit_)].status;
  }
  return result;
}

void Launcher::say(std::string_view line) { output_.say(fmt::format("{}: {}", spec_.name, line)); }

void Launcher::on_guardian() {
  while (auto event = guardian_->next()) {
    if (event->kind == GuardianEvent::Kind::unkillable) {
      say(fmt::format("cannot end process {}: {}", event->pid, std::strerror(event->status)));
    } else if (event->kind == GuardianEvent::Kind::stopped || event->kind == GuardianEvent::Kind::continued) {
      on_stopped(*event);
    } else {
      on_worker_ended(*event);
    }
  }
  if (guardian_->ended()) on_all_ended();
}

void Launcher::keep_guardian_going() {
  constexpr auto kNowAndThen = std::chrono::seconds(1);
  if (ended_) return;
  guardian_->go_on();
  loop_.after(kNowAndThen, [this] { keep_guardian_going(); });
}

void Launcher::on_worker_ended(const GuardianEvent& event) {
  Worker& worker = workers_[static_cast<std::size_t>(event.worker)];
  worker.pid = event.pid;
  bool could_not_start = event.kind == GuardianEvent::Kind::exec_failed;
  if (!could_not_start || event.pid < 0) {
    if (worker.running) --running_;
    worker.running = false;
  }
  if (!could_not_start) worker.status = event.status;
  if ((!could_not_start && event.status == 0) || worker.given_up) return;
  if (interrupted_by_ == 0) {
    auto failure = failure_of(event.worker, event);
    if (failure.cause == JobFailure::killed && spec_.expendable &&
        spec_.expendable(placement_.first_rank + event.worker)) {
      return say(failure.text + "; the others go on");
    }
    return consider(failure, &worker);
  }
  if (!std::exchange(interruption_ended_workers_, true)) {
    loop_.after(std::max<Duration>(kAfterInterrupt,
                                   std::chrono::duration_cast<Duration>(std::chrono::duration<double>(spec_.grace_s))),
                [this] { guardian_->stop(Duration::zero()); });
  }
}

// That a worker was stopped, or goes on.
void Launcher::on_stopped(const GuardianEvent& event) {
  Worker& worker = workers_[static_cast<std::size_t>(event.worker)];
  worker.pid = event.pid;
  worker.stopped_by = event.kind == GuardianEvent::Kind::stopped ? event.status : 0;
  worker.since = Clock::now();
  ++worker.turns;
  if (worker.stopped_by != 0) watch_stopped(event.worker);
}

void Launcher::watch_stopped(int local_rank) {
  if (!spec_.stopped_s || suspended_) return;
  const std::chrono::duration<double> patience(spec_.stopped_s(placement_.first_rank + local_rank));
  loop_.after(std::chrono::duration_cast<Duration>(patience),
              [this, local_rank, turns = workers_[static_cast<std::size_t>(local_rank)].turns] {
                if (workers_[static_cast<std::size_t>(local_rank)].turns == turns) on_stopped_too_long(local_rank);
              });
}

void Launcher::on_stopped_too_long(int local_rank) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const bool ending = failure_ || interrupted_by_ != 0 || worker.given_up;
  if (!worker.running || worker.stopped_by == 0 || suspended_ || ending) return;
  const auto failure = stopped_failure(local_rank);
  if (!spec_.expendable) return consider(failure);
  // The others have closed the book on it: it could only fail.
  worker.given_up = true;
  guardian_->kill(local_rank);
  if (!spec_.expendable(placement_.first_rank + local_rank)) return consider(failure);
  say(fmt::format("{}: killed; {}", failure.text, running_ > 1 ? "the others go on" : "the others have ended"));
}

JobFailure Launcher::stopped_failure(int local_rank) const {
  const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const std::chrono::duration<double> still = Clock::now() - worker.since;
  return {JobFailure::killed, 4,
          fmt::format("{} was stopped by {} and stood still for {:.3g} s", name_of(local_rank),
                      describe_signal(worker.stopped_by), still.count())};
}

std::string Launcher::name_of(int local_rank) const {
  const int rank = placement_.first_rank + local_rank;
  return fmt::format("{} (pid {}, host {})", spec_.called ? spec_.called(rank) : fmt::format("rank {}", rank),
                     workers_[static_cast<std::size_t>(local_rank)].pid, host_);
}

JobFailure Launcher::failure_of(int local_rank, const GuardianEvent& event) const {
  if (event.kind == GuardianEvent::Kind::exec_failed) {
    auto error = cannot_start(spec_.command[0], event.status);
    return {JobFailure::cannot_start, error.exit_code(),
            fmt::format("{} (rank {}, host {})", error.what(), placement_.first_rank + local_rank, host_)};
  }
  const std::string who = name_of(local_rank);
  if (WIFSIGNALED(event.status)) {
    int number = WTERMSIG(event.status);
    return {JobFailure::killed, 128 + number,
            fmt::format("{} was killed by {}{}", who, describe_signal(number),
                        WCOREDUMP(event.status) ? " and dumped core" : "")};
  }
  int code = WEXITSTATUS(event.status);
  return {is_consequence(code) ? JobFailure::gave_up : JobFailure::exited, code,
          fmt::format("{} exited with code {}", who, code)};
}

void Launcher::consider(const JobFailure& failure, const Worker* worker) {
  if (failure_) return;
  if (!candidate_) {
    bool may_be_consequence = failure.cause == JobFailure::gave_up || failure.cause == JobFailure::lost_node;
    loop_.after(may_be_consequence ? kCauseOfGivingUp : kBetterCause, [this] { decide(); });
  }
  if (candidate_ && candidate_->cause <= failure.cause) return;
  candidate_ = failure;
  culprit_ = worker != nullptr ? static_cast<int>(worker - workers_.data()) : -1;
}

void Launcher::decide() {
  if (failure_) return;
  if (candidate_->cause == JobFailure::gave_up && spec_.stopped_s) {
    for (std::size_t local = 0; local < workers_.size(); ++local) {  // who stands still is why
      if (workers_[local].running && workers_[local].stopped_by != 0)
        consider(stopped_failure(static_cast<int>(local)));
    }
  }
  if (link_) link_->fail(*candidate_);
  if (!link_ || link_->decides()) return stop_because(*candidate_);
  loop_.after(kNodeZeroAnswers, [this] {
    if (!failure_) stop_because(*candidate_);
  });
}

void Launcher::stop_because(const JobFailure& failure) {
  if (failure_) return;
  if (!candidate_ || candidate_->text != failure.text) culprit_ = -1;
  failure_ = failure;
  stopped_ = static_cast<int>(
      std::ranges::count_if(workers_, [](const Worker& worker) { return worker.running && worker.stopped_by == 0; }));
  if (guardian_ && !ended_) {
    guardian_->stop(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(spec_.grace_s)));
  }
}

void Launcher::on_all_ended() {
  if (guardian_->died() && !failure_ && !candidate_) {
    consider({JobFailure::killed, 1, "the process that guards the workers was killed, and the workers with it"});
  }
  loop_.forget(guardian_->fd());
  stdin_.reset();
  output_.drain();
  ended_ = true;
  if (candidate_ && !failure_) return decide();
  if (failure_) return;
  if (link_) {
    link_->done();
  } else {
    finished_ = true;
  }
}

void Launcher::on_output_broken(int error) {
  // A reader that has seen enough (head) is no news.
  std::string text = error == EPIPE ? "" : fmt::format("cannot write the workers' output: {}", std::strerror(error));
  JobFailure failure{JobFailure::cannot_start, error == EPIPE ? 128 + SIGPIPE : 1, text};
  if (link_ && !failure_) link_->fail({failure.cause, failure.exit_code, "the output of a launcher was closed"});
  stop_because(failure);
}

std::string Launcher::interrupted_text() const {
  return fmt::format("interrupted by {}", describe_signal(interrupted_by_));
}

void Launcher::on_signal(int number, bool from_here) {
  auto now = Clock::now();
  bool again = number == interrupted_by_ && (number == SIGINT || number == SIGTERM);
  if (again && now - interrupted_at_ < kSameSignal) return;
  if (again) number = SIGKILL;
  if (ends_programs(number)) {
    interrupted_by_ = number;
    interrupted_at_ = now;
  }
  if (number == SIGTSTP) suspended_ = true;
  if (number == SIGCONT && std::exchange(suspended_, false)) {
    for (std::size_t local = 0; local < workers_.size(); ++local) {
      workers_[local].since = now;
      if (workers_[local].stopped_by != 0) watch_stopped(static_cast<int>(local));
    }
  }
  if (link_ && from_here) link_->forward_signal(number);
  if (guardian_ && !ended_) {
    number == SIGKILL ? guardian_->stop(Duration::zero()) : guardian_->signal(number);
  } else if (ends_programs(number) || number == SIGKILL) {
    // Nothing runs here: we wait for other nodes, or for a reader of our output.
    JobFailure failure{JobFailure::cannot_start, 128 + interrupted_by_, interrupted_text()};
    if (link_) link_->fail(failure);
    stop_because(failure);
  }
  if (number != SIGTSTP || !from_here) return;
  if (link_) {
    say(fmt::format("the workers of all nodes are stopped; kill -CONT {} continues them", ::getpid()));
  } else {
    signals_.suspend();
  }
}

}  // namespace trireme::launch
