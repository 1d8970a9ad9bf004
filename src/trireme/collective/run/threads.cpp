// Ranks as threads of one process.
#include <exception>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/base/mutex.h"
#include "trireme/collective/run/communicator_impl.h"
#include "trireme/net/memory/inproc.h"

namespace trireme {

void run_threads(int ranks, const std::function<void(Communicator&)>& body, const Options& options) {
  run_ranks(net::inproc_world(ranks), body, options);
}

void run_ranks(std::vector<std::unique_ptr<net::Transport>> world, const std::function<void(Communicator&)>& body,
               const Options& options) {
  Mutex mutex;
  std::exception_ptr cause, consequence;
  auto run = [&](std::unique_ptr<net::Transport> transport) {
    try {
      auto comm = join_world(std::move(transport), options);
      try {
        body(comm);
      } catch (const std::exception& error) {
        comm.abort(error.what());  // the others must not wait for a rank that is gone
        throw;
      }
    } catch (const Aborted&) {
      MutexLock lock(mutex);
      if (!consequence) consequence = std::current_exception();
    } catch (...) {
      MutexLock lock(mutex);
      if (!cause) cause = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (auto& transport : world) threads.emplace_back(run, std::move(transport));
  }
  if (cause) std::rethrow_exception(cause);
  if (consequence) std::rethrow_exception(consequence);
}

}  // namespace trireme
