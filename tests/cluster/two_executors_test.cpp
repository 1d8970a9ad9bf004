// One schedule, two executors: what the runtime sends, recorded at its transport, is what the simulator plays: every
// message of every rank, in its order, with its bytes.
#include <gmock/gmock.h>

#include <mutex>

#include "tests/sync/loop.h"
#include "trireme/cluster/network.h"
#include "trireme/cluster/sim/collective_time.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/collective/schedule.h"

namespace trireme::cluster {
namespace {

using sync::Exchange;

struct Sent {
  int to = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Sent&) const = default;
  auto operator<=>(const Sent&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) { return out << sent.bytes << " to " << sent.to; }
using Log = std::vector<std::vector<Sent>>;  // by rank

// Writes down what a rank sends while `on`. Any thread.
struct Recorder {
  std::mutex mutex;
  bool on = false;         // guarded by mutex
  std::vector<Sent> sent;  // guarded by mutex
  void set(bool now) {
    std::lock_guard lock(mutex);
    on = now;
  }
  void add(int to, std::uint64_t bytes) {
    std::lock_guard lock(mutex);
    if (on && bytes > 0) sent.push_back({to, bytes});
  }
};

// A channel that is written down, and has no board: all goes by messages.
class RecordedChannel : public net::Channel {
 public:
  RecordedChannel(std::unique_ptr<net::Channel> inner, Recorder& recorder)
      : inner_(std::move(inner)), recorder_(recorder) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int world_rank(int member) const override { return inner_->world_rank(member); }
  void send(int peer, const net::CallId& call, std::span<const std::byte> bytes, net::Ticket& ticket) override {
    recorder_.add(peer, bytes.size());
    inner_->send(peer, call, bytes, ticket);
  }
  void recv(int peer, const net::CallId& call, const net::Sink& sink, net::Ticket& ticket) override {
    inner_->recv(peer, call, sink, ticket);
  }
  bool progress() override { return inner_->progress(); }
  void idle(Duration longest) override { inner_->idle(longest); }
  void cancel() noexcept override { inner_->cancel(); }
  int waiting_for() const override { return inner_->waiting_for(); }

 private:
  std::unique_ptr<net::Channel> inner_;
  Recorder& recorder_;
};

class RecordedTransport : public net::Transport {
 public:
  RecordedTransport(std::unique_ptr<net::Transport> inner, Recorder& recorder)
      : inner_(std::move(inner)), recorder_(recorder) {}
  std::string_view name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<net::Channel> open(std::uint64_t id, std::span<const int> members, Deadline deadline) override {
    return std::make_unique<RecordedChannel>(inner_->open(id, members, deadline), recorder_);
  }
  net::Heap& heap() override { return inner_->heap(); }
  void abort(std::string_view why) noexcept override { inner_->abort(why); }
  void check() override { inner_->check(); }
  void check_peer(int awaited) override { inner_->check_peer(awaited); }
  void enter(const net::CallId& call) noexcept override { inner_->enter(call); }
  void leave() noexcept override { inner_->leave(); }
  std::vector<net::PeerState> survey(Deadline deadline) override { return inner_->survey(deadline); }

 private:
  std::unique_ptr<net::Transport> inner_;
  Recorder& recorder_;
};

using Body = std::function<void(Communicator&, Recorder&)>;

Log recorded(int ranks, const Options& options, const Body& body) {
  std::vector<Recorder> recorders(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<net::Transport>> world;
  for (auto& transport : net::inproc_world(ranks)) {
    auto& recorder = recorders[world.size()];
    world.push_back(std::make_unique<RecordedTransport>(std::move(transport), recorder));
  }
  run_ranks(
      std::move(world), [&](Communicator& comm) { body(comm, recorders[static_cast<std::size_t>(comm.rank())]); },
      options);
  Log log;
  for (auto& recorder : recorders) log.push_back(recorder.sent);
  return log;
}

Network network_of(int ranks) { return Network(flat_cluster(ranks, 1e-5, 1e9)); }

// ---- Collectives ----

void call(Communicator& comm, Collective what, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<float> small(count), other_small(count), large(count * ranks), other(count * ranks);
  switch (what) {
    case Collective::broadcast:
      return comm.broadcast(small, 0);
    case Collective::reduce:
      return comm.reduce(small, other_small, Op::sum, 0);
    case Collective::all_reduce:
      return comm.all_reduce(small, Op::sum);
    case Collective::scatter:
      return comm.scatter(large, small, 0);
    case Collective::gather:
      return comm.gather(small, large, 0);
    case Collective::all_gather:
      return comm.all_gather(small, large);
    case Collective::reduce_scatter:
      return comm.reduce_scatter(large, small, Op::sum);
    case Collective::all_to_all:
      return comm.all_to_all(large, other);
    case Collective::barrier:
      return comm.barrier();
  }
}

// In the order of rounds. Within one their order says nothing, and what goes to one peer in two pieces is one message.
void expect_same(const Log& real, const std::vector<std::vector<std::vector<Sent>>>& rounds, const std::string& where) {
  for (std::size_t rank = 0; rank < real.size(); ++rank) {
    std::size_t at = 0;
    for (const auto& round : rounds[rank]) {
      std::map<int, std::uint64_t> expected, got;
      for (const auto& sent : round) expected[sent.to] += sent.bytes;
      while (got != expected && at < real[rank].size()) {
        got[real[rank][at].to] += real[rank][at].bytes;
        ++at;
      }
      ASSERT_EQ(got, expected) << where << ", rank " << rank;
    }
    ASSERT_EQ(at, real[rank].size()) << where << ", rank " << rank;
  }
}

TEST(TwoExecutors, EveryMessageOfEveryCollective) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.shared || algorithm.what == Collective::barrier) continue;
    for (int ranks : {2, 3, 5, 8}) {
      const std::size_t count = 37;
      const auto where = fmt::format("{} by {} on {}", name(algorithm.what), algorithm.name, ranks);
      const auto real = recorded(ranks, {}, [&](Communicator& comm, Recorder& recorder) {
        comm.set_algorithm(name(algorithm.what), algorithm.name);
        recorder.set(true);
        call(comm, algorithm.what, count);
        recorder.set(false);
      });
      std::vector<std::vector<std::vector<Sent>>> rounds(static_cast<std::size_t>(ranks));
      const Call shape{algorithm.what, 0, ranks, 0, count, count};
      std::vector<double> times(static_cast<std::size_t>(ranks), 0.0);
      play(network_of(ranks), algorithm, shape, sizeof(float), times, times, nullptr, [&](const Message& message) {
        auto& of_rank = rounds[static_cast<std::size_t>(message.from)];
        of_rank.resize(std::max<std::size_t>(of_rank.size(), static_cast<std::size_t>(message.round) + 1));
        if (message.bytes > 0) of_rank[static_cast<std::size_t>(message.round)].push_back({message.to, message.bytes});
      });
      expect_same(real, rounds, where);
    }
  }
}

// ---- Strategies ----

// As many elements as the small loop's model, in one tensor.
Profile profile_of_loop() {
  Profile profile;
  profile.device = "cpu";
  profile.forward_s = profile.backward_s = {1e-3, 1e-3, 1e-3};
  profile.step_s = {2e-3, 2e-3, 2e-3};
  profile.gradients.push_back({"w", sync::test::kCount, 1, {1e-3, 1e-3, 1e-3}});
  return profile;
}

constexpr std::uint64_t kSeed = 7;

Log simulated(int ranks, const std::string& strategy, const Profile& profile, int steps) {
  Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse(strategy);
  job.steps = steps;
  job.seed = kSeed;
  job.algorithm = "ring";
  job.bucket_plan = "one";
  Log log(static_cast<std::size_t>(ranks));
  job.observe = [&](const Message& message) {
    if (message.bytes > 0) log[static_cast<std::size_t>(message.from)].push_back({message.to, message.bytes});
  };
  simulate(network_of(ranks), job);
  return log;
}

Log real(int ranks, const std::string& strategy, std::int64_t steps) {
  const auto choice = sync::Choice::parse(strategy);
  Options options;
  options.algorithm = "ring";
  return recorded(ranks, options, [&](Communicator& world, Recorder& recorder) {
    const sync::test::Learner learner(world);
    auto one = choice.make({.world = world, .steps_per_epoch = steps, .total_steps = steps, .seed = kSeed});
    const std::vector<sync::Replica> replicas{learner.replica(*one)};
    one->begin(replicas);
    recorder.set(true);
    sync::test::FlatWorker worker(world, *one, {}, learner);
    for (std::int64_t number = 0; number < steps; ++number) sync::run_step(*one, worker, {number, 0.01});
    while (one->drain()) {
    }
    recorder.set(false);
    world.barrier();
    one->finish();
  });
}

// Those whose workers talk to each other through the communicator. A mean of gradients in backward is the exchange of
// grad/, whose calls are those of the test above.
TEST(TwoExecutors, EveryMessageOfEveryStrategyThatMeets) {
  const auto profile = profile_of_loop();
  for (const std::string strategy :
       {"local-sgd:H=2", "post-local-sgd:H=2", "easgd:tau=4", "diloco:H=4", "sma:learners=1,tau=2",
        "stale-allreduce:s=0", "average-at-end", "gossip-dpsgd:graph=ring", "gossip-dpsgd:graph=random",
        "gossip-dpsgd:graph=exponential", "gossip-sgp:graph=exponential", "gossip-sgp:graph=random,peers=2",
        "gossip-sgp:graph=full"}) {
    for (int ranks : {2, 5}) {
      constexpr int kSteps = 8;
      auto expected = simulated(ranks, strategy, profile, kSteps);
      auto got = real(ranks, strategy, kSteps);
      for (std::size_t rank = 0; rank < got.size(); ++rank) {
        EXPECT_EQ(got[rank], expected[rank]) << strategy << " on " << ranks << ", rank " << rank;
      }
    }
  }
}

// Late ones: what is under way when the steps that count begin was sent in those before.
TEST(TwoExecutors, EveryMessageOfLateMeans) {
  const auto profile = profile_of_loop();
  const auto expected = simulated(4, "stale-allreduce:s=2", profile, 6);
  const auto got = real(4, "stale-allreduce:s=2", 6 + 2);
  for (std::size_t rank = 0; rank < got.size(); ++rank) EXPECT_EQ(got[rank], expected[rank]) << "rank " << rank;
}

// At their own pace ranks take as many steps as they get: the messages of those that both took are the same.
TEST(TwoExecutors, WhoAsksAsksTheSame) {
  const auto profile = profile_of_loop();
  const auto expected = simulated(4, "gossip-adpsgd", profile, 12);
  const auto got = real(4, "gossip-adpsgd", 12);
  for (std::size_t rank : {0, 2}) {
    const auto common = std::min(got[rank].size(), expected[rank].size());
    ASSERT_GE(common, 10);
    for (std::size_t k = 0; k < common; ++k) EXPECT_EQ(got[rank][k], expected[rank][k]) << "rank " << rank;
  }
}

// Servers are reached by sockets of their own: what workers count is compared.
TEST(TwoExecutors, BytesToAndFromServers) {
  const auto profile = profile_of_loop();
  constexpr int kSteps = 8;
  const auto traces = sync::test::run(3, "ps-bsp", {}, kSteps, 0.01);
  Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse("ps-bsp");
  job.steps = kSteps - 1;  // and the one before those that count
  const auto result = simulate(network_of(3), job);
  const std::uint64_t model = sync::test::kCount * sizeof(float);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    // The first pull is the real worker's beginning.
    EXPECT_EQ(traces.report[rank].bytes_sent, result.workers[rank].bytes_sent + 2 * model + model) << "rank " << rank;
    EXPECT_EQ(traces.report[rank].stale.begin()->first, 0);
  }
}

}  // namespace
}  // namespace trireme::cluster
