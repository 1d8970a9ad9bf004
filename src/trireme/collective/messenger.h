// Point-to-point messages on a channel of their own. Between two ranks they match in the order sent; a tag that
// differs is an error that names both, never a wrong match. Started messages move on without being waited for.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "trireme/collective/lane.h"

namespace trireme {

class Messenger {
 public:
  Messenger(net::Transport& transport, std::unique_ptr<net::Channel> channel, const Lane::Settings& settings);
  // Messages still under way are dropped.
  ~Messenger();

  // One message under way; done, or failed with an error. Guarded by the messenger's mutex.
  struct Operation {
    net::Ticket ticket;
    net::CallId call;
    int peer;
    bool sending;
    Deadline deadline;
    std::exception_ptr error;
    bool finished = false;
  };
  using Handle = std::shared_ptr<Operation>;  // shared: the messenger moves it, the caller waits for it

  Handle send(int peer, std::span<const std::byte> bytes, std::uint64_t tag);
  Handle recv(int peer, std::span<std::byte> bytes, std::uint64_t tag);
  // False if the time is over first. Rethrows the message's error.
  bool wait(const Handle& operation, Duration longest);
  bool done(const Handle& operation);

 private:
  Handle post(Handle operation, std::span<const std::byte> out, std::span<std::byte> in);
  void progress();
  void fail(std::exception_ptr error);
  void work(std::stop_token stop);

  net::Transport& transport_;
  const Lane::Settings settings_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // All guarded by mutex_.
  std::unique_ptr<net::Channel> channel_;
  std::list<Handle> pending_;
  std::exception_ptr broken_;
  std::jthread thread_;  // started with the first message
};

}  // namespace trireme
