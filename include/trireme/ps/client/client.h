// A worker's end of the parameter server.
//
//   ps::Client client(ps::client_options_from_environment());
//   client.declare({tensors, update, consistency}, initial, deadline);
//   auto gradient = client.allocate(client.count()), weights = client.allocate(client.count());
//   client.wait(client.pull(weights), deadline);
//   loop: … client.wait(client.push_pull(gradient, lr, weights), deadline);
//
// Gradients arrive scaled by 1/workers, so that the sum of a round is the mean. Servers may die and shards move while
// all this goes on: pushes that were not answered are sent again, and take effect exactly once.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/clock.h"
#include "trireme/net/join/key.h"
#include "trireme/ps/job.h"

namespace trireme::ps {

struct ClientOptions {
  std::string at;  // the coordinator's endpoint
  net::Key key;    // the job's
  int rank = -1;   // the worker's id, if the job has not begun; -1: any; kLateWorker: let in once it has
  Reach reach = Reach::automatic;
  double connect_timeout_s = 30;
};
// TRIREME_PS, and the key as key_from_environment() finds it; with RANK of a launcher. Throws ConfigError when
// TRIREME_PS is not set.
ClientOptions client_options_from_environment();

// What servers have besides the weights: the update's state, each part as long as the model and flat as it is.
struct ServerState {
  std::vector<std::vector<float>> parts;
  std::uint64_t updates = 0;  // that led to it
};

// A push or pull under way, to be waited for once.
struct Ticket {
  std::uint64_t push = 0, pull = 0;  // 0: none
};

// What came of it.
struct Outcome {
  std::uint64_t staleness = 0;  // push: updates by others since the weights were read; of the shard with most
  std::uint64_t version = 0;    // pull: updates that are in the weights; of the shard with fewest
  double held_s = 0;            // pull: how long servers held it back for slower workers
  // Bytes of the values as they travelled, encoded where they were, with the places of those of a sparse push; where
  // memory is shared, as they would have.
  std::uint64_t pushed = 0, pulled = 0;
};

// What compression did for a worker so far, by what was encoded: gradients that it pushed and differences that it
// pulled.
struct CompressionReport {
  std::uint64_t bytes_before = 0, bytes_after = 0;
  double encode_s = 0, decode_s = 0;  // by the worker; what servers take is part of its waiting
  double error = 0;                   // of gradients, ‖x − decoded‖ / ‖x‖, mean over the pushes looked at
  double carried = 0;                 // 2-norm of what error feedback held at the last push looked at
};

// Every method may be called from any thread; waits throw Timeout that names who did not answer, and Error when the job
// cannot go on. Memory given to push and pull stays untouched by the caller until wait() has returned or thrown. A pull
// that timed out is forgotten; after a push that timed out the client is of no more use.
class Client {
 public:
  // Throws ConfigError, Timeout, ProtocolError.
  explicit Client(ClientOptions options);
  // Leaves the job.
  ~Client();
  Client(const Client&) = delete;

  WorkerId id() const;
  // The model and what servers do with gradients; the first values are those of the worker with the lowest id. Returns
  // when the job has begun. Throws Error naming the tensor when another worker declared otherwise.
  // `state`: what an earlier job's servers had; none: zeros. It must be of the same update.
  void declare(const JobSpec& spec, std::span<const float> initial, Deadline deadline, const ServerState& state = {});
  std::uint64_t count() const;  // elements of all tensors
  std::uint64_t clock() const;  // pushes so far, or what the others had done when this worker joined
  bool joined_late() const;     // after the job had begun
  std::size_t live_workers() const;
  // Of those that the job began with and that are still there the one of the lowest id; kNobody if none is. All that
  // were in a sum() see the same when it has returned, but for who has died since.
  WorkerId first_worker() const;

  // Memory that servers on this host read and write in place; any other memory works too, with copies.
  std::span<float> allocate(std::size_t count);
  void release(std::span<float> memory) noexcept;

  // Of all tensors, flat, in the order of the declaration: count() floats, else ConfigError. In a compressed job a push
  // is encoded before it returns, and throws DataError that names the tensor when a value is not finite; a pull gives
  // weights that are as near to the servers' as what was sent so far, pull_exact() the servers' own.
  Ticket push(std::span<const float> gradient, double lr);
  Ticket pull(std::span<float> into);
  Ticket pull_exact(std::span<float> into);
  // Of the built-in updates; nothing of others. While nobody pushes.
  ServerState pull_state(Deadline deadline);
  // The pull sees the push. The cheapest way of both.
  Ticket push_pull(std::span<const float> gradient, double lr, std::span<float> into);
  // Gradients of some elements only: everything else stays as it is, its momentum too. Counts as one push. Segments are
  // of the flat vector and may come in any order; what is named twice is added. Values are copied before it returns.
  // Throws ConfigError where an element is none of the model's, or there are more or fewer values than elements.
  Ticket push_segments(std::span<const Segment> segments, std::span<const float> values, double lr);
  // The same for whole rows of one tensor, named as it was declared; `values` row after row.
  Ticket push_rows(std::string_view tensor, std::span<const std::uint64_t> rows, std::span<const float> values,
                   double lr);
  // push_segments and a pull that sees it, as cheap as push_pull: nothing is copied. The segments must be in order and
  // must not overlap; `values` has theirs one after the other.
  Ticket push_pull_segments(std::span<const Segment> segments, std::span<const float> values, double lr,
                            std::span<float> into);
  // Whether wait() would return at once. Throws Error when the job cannot go on.
  bool done(const Ticket& ticket);
  // Until every server it went to has answered: a push is then kept by all replicas, and what was pulled is in place.
  Outcome wait(const Ticket& ticket, Deadline deadline);

  // Adds up `values` over all live workers, each of which calls it with the same name; returns how many they were. A
  // death does not keep the others waiting, nor does a worker that joined late and has never called it.
  std::size_t sum(std::string_view name, std::span<double> values, Deadline deadline);
  // The next number, from 0, of a counter that all workers share; nothing once it has reached the limit.
  std::optional<std::uint64_t> next_ticket(std::string_view name, std::uint64_t limit, Deadline deadline);
  // Where that counter is; 0 where nobody has asked for it, or not for long.
  std::uint64_t counted(std::string_view name, Deadline deadline);
  // Tells every worker that the job shall end; the first reason counts.
  void stop(std::string_view why);
  // Why the job shall end; empty while it shall not.
  std::string stopped() const;
  // Payload bytes sent and received over sockets, memory that was shared not counted.
  std::uint64_t bytes_moved() const;
  // Nothing in a job without compression.
  std::optional<CompressionReport> compression() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::ps
