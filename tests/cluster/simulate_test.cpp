#include "trireme/cluster/sim/job/simulate.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/cluster/profile/example_layers.h"
#include "trireme/cluster/sim/job/simulate_json.h"
#include "trireme/cluster/sim/nics.h"
#include "trireme/collective/cost/cost.h"
#include "trireme/collective/cost/formulas.h"

namespace trireme::cluster::simulate_test {
namespace {

// 4 layers of 1 Mi elements: forward 40 ms, backward 80 ms, optimizer 8 ms; gradients ready at 20, 40, 60, 80 ms.
Profile plain_profile() {
  Profile profile;
  profile.model = "plain";
  profile.device = "cpu";
  profile.batch = 16;
  profile.samples = 16000;
  auto always = [](double seconds) { return Quantiles{seconds, seconds, seconds}; };
  profile.forward_s = always(0.040);
  profile.backward_s = always(0.080);
  profile.optimizer_s = always(0.008);
  profile.step_s = always(0.130);  // 2 ms of other things
  for (int k = 1; k <= 4; ++k) {
    profile.gradients.push_back({"layer" + std::to_string(k), 1 << 20, 1024, always(0.020 * k)});
  }
  return profile;
}

Job job_of(const Profile& profile, std::string_view strategy) {
  Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse(strategy);
  return job;
}

constexpr double kAlpha = 1e-4, kRate = 1e9;
constexpr double kRounding = 1e-6;  // parts of a vector that do not come out even

double ring_s(double bytes, int ranks) {
  return closed_form(Collective::all_reduce, "ring", {ranks, bytes, kAlpha, 1 / kRate, 0})->time_one.value;
}

TEST(Simulate, OneBucketIsComputeAndTheClosedForm) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "allreduce");
  job.bucket_plan = "one";
  job.algorithm = "ring";
  const auto result = simulate(flat_cluster(8, kAlpha, kRate), job);
  const double bytes = 4.0 * (4 << 20) + 4 * (7 + 4);  // and the notes
  EXPECT_NEAR(result.step_s, 0.130 + ring_s(bytes, 8), kRounding);
  EXPECT_NEAR(result.breakdown_s.exposed, ring_s(bytes, 8), kRounding);
  EXPECT_NEAR(result.breakdown_s.forward, 0.040, 1e-12);
  EXPECT_NEAR(result.breakdown_s.step(), result.step_s, kRounding);
  EXPECT_EQ(result.buckets, 1);
  EXPECT_NEAR(static_cast<double>(result.bytes_sent), 8 * 20 * 2 * 7 / 8.0 * bytes, 1e4);
}

TEST(Simulate, BucketsOverlapWithBackward) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "allreduce");
  job.bucket_plan = "tensor";
  job.algorithm = "ring";
  const auto result = simulate(flat_cluster(8, kAlpha, kRate), job);
  const double last = ring_s(4.0 * (1 << 20) + 44, 8);  // the others are done within the 20 ms between them
  EXPECT_LT(last, 0.020);
  EXPECT_NEAR(result.breakdown_s.exposed, last, kRounding);
  EXPECT_NEAR(result.step_s, 0.130 + last, kRounding);
  EXPECT_GT(result.breakdown_s.communication, 3 * last);
}

TEST(Simulate, ASlowChannelQueues) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "allreduce");
  job.bucket_plan = "tensor";
  job.algorithm = "ring";
  const double rate = 1e8;
  const auto result = simulate(flat_cluster(8, kAlpha, rate), job);
  auto ring = [&](double bytes) {
    return closed_form(Collective::all_reduce, "ring", {8, bytes, kAlpha, 1 / rate, 0})->time_one.value;
  };
  const double end = 0.020 + 3 * ring(4.0 * (1 << 20)) + ring(4.0 * (1 << 20) + 44);
  EXPECT_NEAR(result.breakdown_s.exposed, end - 0.080, kRounding);
  EXPECT_GT(result.exchange_s.queueing, 0);
  auto lanes = job;
  lanes.lanes = 2;
  EXPECT_LT(simulate(flat_cluster(8, kAlpha, rate), lanes).step_s, result.step_s);
}

// Beside a bucket compute goes at half its speed; as long as one travels, and no longer.
TEST(Simulate, ComputeBesideBucketsTakesLonger) {
  auto profile = plain_profile();
  profile.slowdown = 0.5;
  auto job = job_of(profile, "allreduce");
  job.bucket_plan = "tensor";
  job.algorithm = "ring";
  const double one = ring_s(4.0 * (1 << 20), 8), last = ring_s(4.0 * (1 << 20) + 44, 8);
  const auto result = simulate(flat_cluster(8, kAlpha, kRate), job);
  EXPECT_NEAR(result.breakdown_s.backward, 0.080 + 3 * 0.5 * one, kRounding);
  EXPECT_NEAR(result.step_s, 0.130 + 3 * 0.5 * one + last, kRounding);
  // They go on from the first of them to the end: the 60 ms behind it take twice as long.
  const auto slow = simulate(flat_cluster(8, kAlpha, 1e8), job);
  EXPECT_NEAR(slow.breakdown_s.backward, 0.020 + 2 * 0.060, kRounding);
  profile.slowdown = 0;
  EXPECT_NEAR(slow.step_s, simulate(flat_cluster(8, kAlpha, 1e8), job).step_s, kRounding);
}

// Two threads on one core have half of it each; on two they do not notice each other.
TEST(Simulate, WhatIsComputedBehindComputeTakesItsCore) {
  auto profile = plain_profile();
  profile.codecs = {{"int8", 1e-9, 1e-9, 0.25}};
  auto job = job_of(profile, "stale-allreduce");
  job.compress = "int8";
  auto cluster = flat_cluster(8, kAlpha, kRate);
  const auto with_cores = [&](int cores) {
    cluster.nodes[0].cores = cores;
    return simulate(cluster, job);
  };
  const auto spare = with_cores(2), shared = with_cores(1);
  EXPECT_NEAR(spare.step_s, 0.130, kRounding);
  EXPECT_GT(spare.exchange_s.coding, 0.030);
  EXPECT_NEAR(shared.step_s, 0.130 + spare.exchange_s.coding, kRounding);

  // Servers work beside those that compute already, or still.
  job.strategy = sync::Choice::parse("ps-async");
  cluster.stragglers.push_back({.kind = Straggler::Kind::persistent, .workers = {0}, .factor = 1.3});
  EXPECT_GT(with_cores(1).step_s, with_cores(2).step_s);
}

TEST(Simulate, OnOneHostExchangesRunInLine) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "allreduce");
  job.bucket_plan = "tensor";
  LinkModel model;
  model.sync = 1e-6;
  model.memory = {0, {}, 1e-10};
  auto cluster = host_cluster(2, model);
  cluster.nodes[0].cores = 2;
  const auto result = simulate(cluster, job);
  auto direct = [&](std::size_t count) {
    return predict(find_algorithm(Collective::all_reduce, "direct"), {Collective::all_reduce, 0, 2, 0, count, count},
                   DType::f32, model);
  };
  // Gradients that are alone and large stay where they are, so that what ranks tell each other goes on its own.
  const double notes = predict(find_algorithm(Collective::all_reduce, Pattern::slots),
                               {Collective::all_reduce, 0, 2, 0, 11, 11}, DType::f32, model);
  const double exchange = 4 * direct(1 << 20) + notes;
  EXPECT_NEAR(result.breakdown_s.exposed, exchange, 1e-9);
  EXPECT_NEAR(result.step_s, 0.130 + exchange, 1e-9);
  cluster.nodes[0].cores = 4;  // a spare one: only the last is seen
  EXPECT_NEAR(simulate(cluster, job).step_s, 0.130 + direct(1 << 20), 1e-9);
}

TEST(Simulate, AveragingEveryHStepsCostsAnHth) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "local-sgd:H=4");
  job.algorithm = "ring";
  const auto result = simulate(flat_cluster(8, kAlpha, kRate), job);
  const double mean = ring_s(4.0 * (4 << 20), 8);
  EXPECT_NEAR(result.step_s, 0.130 + mean / 4, 1e-4);
}

TEST(Simulate, EveryStrategyOnEveryNetwork) {
  auto profile = plain_profile();
  profile.residuals = {0.9, 0.95, 1, 1, 1.05, 1.3};
  profile.update_s_per_byte = 2e-10;
  profile.pack_s_per_byte = 1e-10;
  auto host = host_cluster(4, {});
  host.nodes[0].cores = 4;
  for (const auto& kind : sync::strategies()) {
    for (const auto& cluster : {flat_cluster(5, kAlpha, kRate), host}) {
      if (kind.name == "hogwild" && !cluster.shares_memory()) continue;
      auto job = job_of(profile, kind.name);
      const auto once = simulate(cluster, job), again = simulate(cluster, job);
      SCOPED_TRACE(kind.name);
      EXPECT_EQ(to_json(once).dump(), to_json(again).dump());
      EXPECT_GT(once.step_s, 0.9 * 0.130);
      EXPECT_LT(once.step_s, 1.0);
      EXPECT_GE(once.step_ends.size(), 15);
      EXPECT_TRUE(std::ranges::is_sorted(once.step_ends));
      EXPECT_EQ(once.workers.size(), cluster.workers());
      EXPECT_FALSE(once.why.empty());
      const bool silent = kind.name == "average-at-end" || kind.name == "hogwild";
      EXPECT_EQ(once.bytes_sent == 0, silent);
      job.seed = 2;
      EXPECT_NE(simulate(cluster, job).step_s, once.step_s);
    }
  }
}

TEST(Simulate, EveryCodecSendsWhatItSays) {
  const auto profile = plain_profile();
  const auto dense = simulate(flat_cluster(4, kAlpha, kRate), job_of(profile, "allreduce"));
  for (const auto& codec : compress::codecs()) {
    for (const char* strategy : {"allreduce", "local-sgd:H=1", "ps-bsp", "stale-allreduce"}) {
      auto job = job_of(profile, strategy);
      job.compress = codec.name;
      const auto result = simulate(flat_cluster(4, kAlpha, kRate), job);
      SCOPED_TRACE(std::string(codec.name) + " " + strategy);
      EXPECT_GT(result.bytes_sent, 0);
      EXPECT_LT(result.bytes_sent, dense.bytes_sent * 2.1);  // all that exceeds a threshold, by gather
    }
  }
}

TEST(Simulate, ServersByTheirClocks) {
  auto profile = plain_profile();
  auto cluster = flat_cluster(4, kAlpha, kRate);
  Straggler slow{.kind = Straggler::Kind::persistent, .workers = {3}, .factor = 3};
  cluster.stragglers = {slow};
  auto run = [&](const char* strategy) { return simulate(cluster, job_of(profile, strategy)); };
  const auto bsp = run("ps-bsp"), ssp = run("ps-ssp:s=3"), async = run("ps-async");
  EXPECT_THAT(bsp.stale, testing::ElementsAre(testing::Key(0)));
  EXPECT_GT(bsp.step_s, 3 * 0.128);
  EXPECT_LE(ssp.step_s, bsp.step_s * 1.001);
  EXPECT_LT(async.step_s, 0.7 * bsp.step_s);
  EXPECT_GT(async.stale.rbegin()->first, 0);
  EXPECT_GT(async.workers[0].steps, async.workers[3].steps);
  EXPECT_EQ(bsp.workers[0].steps, bsp.workers[3].steps);
}

// The closed form has 2P models over the server's wire, all pushing at once. But answers leave one after the other, so
// that pushes come one after the other, too, while others compute: all but the last worker's are hidden.
TEST(Simulate, OneServerWithOneWire) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "ps-bsp");
  job.workers = 4;
  job.servers = 1;
  const auto result = simulate(flat_cluster(5, kAlpha, kRate), job);
  const double bytes = 4.0 * (4 << 20);
  const double all_at_once = parameter_server_form({4, bytes, kAlpha, 1 / kRate, 0}).time_one.value;
  EXPECT_LT(result.step_s, 0.122 + all_at_once);
  EXPECT_NEAR(result.step_s, 0.122 + 5 * bytes / kRate + 2 * kAlpha, 0.002);  // the first round is all at once
}

TEST(Simulate, AStragglerIsWaitedFor) {
  auto profile = plain_profile();
  auto cluster = flat_cluster(4, kAlpha, kRate);
  const auto even = simulate(cluster, job_of(profile, "allreduce"));
  cluster.stragglers = {{.kind = Straggler::Kind::persistent, .workers = {2}, .factor = 2}};
  const auto slow = simulate(cluster, job_of(profile, "allreduce"));
  EXPECT_NEAR(slow.step_s, even.step_s + 0.130, 0.01);
  EXPECT_GT(slow.workers[0].wait_s, slow.workers[2].wait_s);
  EXPECT_GT(slow.exchange_s.waiting, 0.05);
}

TEST(Simulate, AMeshIsPlayedByItsPipelineAndTheNetwork) {
  std::vector<ExampleLayer> layers;
  for (int k = 0; k < 8; ++k)
    layers.push_back({"layer" + std::to_string(k), 1 << 20, 1024, 0.01, 0.02, 1 << 20, 1 << 18});
  const auto profile = example_profile("chain", layers, 16);
  auto job = job_of(profile, "allreduce");
  job.mesh = {2, 2, 1};
  job.micro_batches = 4;
  const auto slow = simulate(flat_cluster(4, kAlpha, 1e8), job), fast = simulate(flat_cluster(4, kAlpha, 1e10), job);
  EXPECT_LT(fast.step_s, slow.step_s);
  // 2 stages of 120 ms of compute, 4 micro-batches: a quarter more for filling and draining.
  EXPECT_NEAR(fast.step_s, 0.120 * 1.25, 0.02);
  EXPECT_GT(fast.memory_bytes, 0);
  EXPECT_GT(fast.bytes_sent, 2.0 * profile.gradient_bytes());
  job.mesh = {4, 2, 1};
  EXPECT_THROW(simulate(flat_cluster(4, kAlpha, 1e10), job), ConfigError);
}

// Two stages of one layer each, one micro-batch: forward 1, 2, backward 2, 1, and then the first stage's weights
// travel.
TEST(Simulate, ReplicasOfAMeshExchangeByStrategyAndCodec) {
  const std::vector<ExampleLayer> layers{{"a", 1 << 20, 1024, 0.01, 0.02, 1 << 20, 4},
                                         {"b", 1 << 20, 1024, 0.01, 0.02, 1 << 20, 4}};
  const auto profile = example_profile("two", layers, 8);
  const auto cluster = flat_cluster(4, kAlpha, 1e8);
  const auto step = [&](const char* strategy, const char* codec) {
    auto job = job_of(profile, strategy);
    job.mesh = {2, 2, 1};
    job.compress = codec;
    return simulate(cluster, job);
  };
  const double computed = 0.06 + 2 * kAlpha + 8e-8 + profile.optimizer_s.p50 / 2;
  // Two replicas: each sends its 4 MiB and receives the other's, whatever the algorithm.
  const double one = 4.0 * (1 << 20) / 1e8;
  const auto plain = step("allreduce", "none");
  EXPECT_NEAR(plain.step_s, computed + one, 0.02 * one);
  const auto halved = step("allreduce", "fp16");
  EXPECT_NEAR(halved.step_s - halved.exchange_s.coding, computed + one / 2, 0.04 * one);
  EXPECT_LT(halved.bytes_sent, plain.bytes_sent);
  const auto seldom = step("local-sgd:H=4", "none");
  EXPECT_NEAR(seldom.step_s, computed + one / 4, 0.05 * one);
  EXPECT_EQ(plain.strategy.substr(0, 9), "allreduce");
  EXPECT_GT(step("ps-bsp", "none").step_s, computed + 0.9 * one);
  EXPECT_THROW(step("hogwild", "none"), ConfigError);
}

// Of 10 and 20 ms, 2 take a batch of any size: four micro-batches take 4 and 6.5 ms each, and go through two stages.
TEST(Simulate, EveryMicroBatchIsStarted) {
  const std::vector<ExampleLayer> layers{{"a", 1 << 10, 32, 0.01, 0.02, 1 << 10, 4},
                                         {"b", 1 << 10, 32, 0.01, 0.02, 1 << 10, 4}};
  auto profile = example_profile("two", layers, 8);
  auto job = job_of(profile, "allreduce");
  job.mesh = {1, 2, 1};
  job.micro_batches = 4;
  const auto cluster = flat_cluster(2, 1e-7, 1e10);
  const double rest = profile.optimizer_s.p50 / 2;
  EXPECT_NEAR(simulate(cluster, job).step_s, 5 * 0.0075 + rest, 1e-5);
  for (auto& layer : profile.layers) layer.forward_start_s = layer.backward_start_s = 0.002;
  EXPECT_NEAR(simulate(cluster, job).step_s, 5 * 0.0105 + rest, 1e-5);
}

TEST(Simulate, SingleMessagesQueueInANarrowFabric) {
  auto cluster = flat_cluster(4, 0, 1e9);
  cluster.wiring = {.kind = "fat-tree", .radix = 2, .levels = 2, .oversubscription = {4}, .dims = {}, .switch_s = 0};
  cluster.links[0].shared = true;
  const Network network(cluster);
  Nics nics(network);
  // From both nodes of one switch to the other: it goes on with half of what one node sends.
  EXPECT_NEAR(nics.send(0, 2, 1e6, 0), 2e-3, 1e-9);
  EXPECT_NEAR(nics.send(1, 3, 1e6, 0), 4e-3, 1e-9);
  // Under one switch nobody is in the way.
  Nics near(network);
  near.send(0, 2, 1e6, 0);
  EXPECT_NEAR(near.send(1, 0, 1e6, 0), 1e-3, 1e-9);
}

// There and back; a part of it the other worker's requests hide.
TEST(Simulate, RequestsToServersTakeWhatTheHostsMessagesDo) {
  const auto profile = plain_profile();
  auto cluster = flat_cluster(1, kAlpha, kRate);
  cluster.nodes[0].workers = 2;
  cluster.nodes[0].cores = 8;
  const auto step = [&](double start) {
    cluster.nodes[0].inside.message.start = start;
    return simulate(cluster, job_of(profile, "ps-bsp")).step_s;
  };
  EXPECT_NEAR(step(1.1e-3) - step(1e-4), 2e-3, 1e-3);
}

TEST(Simulate, TracesHaveARunsNames) {
  const auto profile = plain_profile();
  auto job = job_of(profile, "allreduce");
  job.trace = true;
  job.steps = 2;
  const auto result = simulate(flat_cluster(2, kAlpha, kRate), job);
  std::set<std::string> names;
  for (const auto& event : result.trace) {
    names.insert(event.name);
    EXPECT_GE(event.duration_s, 0);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"forward", "backward", "optimizer", "bucket 0"}));
}

TEST(Simulate, WhatCannotRunIsRefused) {
  const auto profile = plain_profile();
  auto refused = [&](auto change) {
    auto job = job_of(profile, "allreduce");
    change(job);
    EXPECT_THROW(simulate(flat_cluster(4, kAlpha, kRate), job), ConfigError);
  };
  refused([](Job& job) { job.workers = 5; });
  refused([](Job& job) { job.steps = 0; });
  refused([](Job& job) { job.algorithm = "telepathy"; });
  refused([](Job& job) { job.bucket_plan = "wish"; });
  refused([](Job& job) { job.strategy = sync::Choice::parse("hogwild"); });
  refused([](Job& job) {
    job.strategy = sync::Choice::parse("gossip-dpsgd");
    job.compress = "fp16";
  });
}

}  // namespace
}  // namespace trireme::cluster::simulate_test
