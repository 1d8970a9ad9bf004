// Requests between two ranks that do not involve the others. Some ranks answer, each on a thread of its own, at once
// and whatever its training thread does; the others ask. A rank that answers may ask itself only: then no circle of
// ranks can wait for itself, and every end of the channel has one thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "trireme/base/mutex.h"
#include "trireme/collective/run/communicator.h"
#include "trireme/net/transport.h"
#include "trireme/sync/exchange/request_header.h"

namespace trireme {
struct WorldEnd;
}

namespace trireme::sync {

class Answering {
 public:
  // Turns a request into its answer, in place. Runs on the answering thread, and on the training thread of a rank that
  // asks itself; what it throws ends the job.
  using Answer = std::function<void(int from, std::span<std::byte> message)>;

  // Collective. `answers[rank]` says who answers, the same on every rank.
  Answering(Communicator& world, std::vector<bool> answers, Answer answer);
  // Without close() first: for when something has failed.
  ~Answering();
  Answering(const Answering&) = delete;

  // Sends a request; its memory belongs to the exchange, unchanged, until finish() has replaced it with the answer.
  // One at a time. Fastest in the transport's heap.
  void start(int whom, std::span<std::byte> message);
  void finish();
  void ask(int whom, std::span<std::byte> message) {
    start(whom, message);
    finish();
  }

  // Collective: when it returns nobody is asked any more. Throws what went wrong on the answering thread.
  void close();

  std::uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  using Header = RequestHeader;
  // One asker, as the answering thread sees it: a header comes, a request comes, an answer goes.
  struct Asker {
    enum class Stage { header, request, answer, gone } stage = Stage::header;
    int rank = 0;
    Header header;
    net::Ticket ticket;
    std::shared_ptr<std::byte[]> memory;  // in the transport's heap; of the longest request so far
    std::size_t capacity = 0;
  };

  void serve(std::stop_token stop);
  void serve_all(const std::stop_token& stop);
  void expect_header(Asker& asker);
  void advance(Asker& asker);
  void await(const std::vector<net::Ticket>& tickets, int whom, int what);
  void leave();
  std::span<std::byte> room(Asker& asker, std::size_t bytes);

  // Constant after construction.
  const std::shared_ptr<WorldEnd> world_;  // shared: with the communicator, which may go first
  net::Transport& transport_;
  const std::vector<bool> answers_;
  const Answer answer_;
  const Duration timeout_;
  int rank_ = 0;
  // Used by the answering thread on ranks that answer, by the training thread on the others.
  std::unique_ptr<net::Channel> channel_;
  std::vector<Asker> askers_;
  // Of the asking thread.
  int asked_ = -1;
  std::span<std::byte> message_;
  Header header_;
  std::vector<net::Ticket> tickets_;

  std::atomic<std::uint64_t> bytes_sent_{0};
  Mutex mutex_;
  CondVar ended_;
  bool running_ TRIREME_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ TRIREME_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace trireme::sync
