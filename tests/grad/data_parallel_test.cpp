#include "trireme/grad/data_parallel.h"
#include "trireme/sync/exchange/bucket_all_reduce.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "tests/grad/models.h"
#include "trireme/base/error.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/compress/codecs.h"
#include "trireme/grad/gradient_exchange.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme {
namespace {

using namespace trireme::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What one process with the whole batch arrives at.
std::vector<torch::Tensor> train_alone(const Examples& all, int steps, std::int64_t width = 32) {
  auto net = small_net(width);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss_on(net, all).backward();
    optimizer.step();
  }
  return weights(net);
}

TEST(DataParallel, EqualsOneWorkerWithTheWholeBatchForEveryPlanAndTurn) {
  constexpr int kSteps = 10;
  auto all = examples({12, 8}, 4);
  auto expected = train_alone(all, kSteps, 256);  // 256 KiB in the middle: born in the heap
  for (int ranks : {1, 2, 3, 4}) {
    for (const char* plan : {"cap:0.01", "cap:25", "tensor", "one", "mgwfbp", "optimal"}) {
      for (auto turn : {sync::Turn::in_line, sync::Turn::background}) {
        run_threads(ranks, [&](Communicator& world) {
          auto net = small_net(256);
          if (world.rank() > 0) {  // rank 0's weights count
            torch::NoGradGuard no_grad;
            for (auto& parameter : net->parameters()) parameter.zero_();
          }
          DataParallelOptions options;
          options.bucket_plan = plan;
          options.turn = turn;
          auto parallel = data_parallel(net, world, options);
          torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
          auto share = part(all, world.rank() * 12 / ranks, (world.rank() + 1) * 12 / ranks);
          for (int step = 0; step < kSteps; ++step) {
            optimizer.zero_grad();
            loss_on(net, share).backward();
            optimizer.step();
          }
          expect_close(weights(net), expected, 2e-5, fmt::format("{} ranks, {}", ranks, plan));
        });
      }
    }
  }
}

// Buckets and the notes behind them have one layout, which both read from the same headers.
TEST(DataParallel, SendsTheBytesThatTheSimulatorCounts) {
  constexpr int kRanks = 2, kSteps = 4;
  cluster::Profile profile;
  profile.batch = 4;
  profile.samples = 4 * kRanks * kSteps;
  for (auto& item : small_net(64)->named_parameters()) {
    const auto elements = static_cast<std::size_t>(item.value().numel());
    profile.gradients.push_back({item.key(), elements, static_cast<std::size_t>(item.value().size(0)), {}});
  }
  std::ranges::reverse(profile.gradients);  // as they become ready
  cluster::Job job;
  job.profile = &profile;
  job.strategy = sync::Choice::parse("allreduce");
  job.bucket_plan = "one";
  job.steps = kSteps;
  cluster::Cluster cluster;
  cluster.nodes.emplace_back().workers = kRanks;
  cluster.links.emplace_back();
  const auto simulated = cluster::simulate(cluster, job);
  run_threads(kRanks, [&](Communicator& world) {
    auto net = small_net(64);
    auto parallel = data_parallel(*net, world, {.bucket_plan = "one"});
    std::uint64_t before = 0;
    for (int step = 0; step <= kSteps; ++step) {  // the first finds the order of gradients
      if (step == 1) before = world.bytes_sent();
      parallel.zero_grad();
      loss_on(net, examples({4, 8}, 4)).backward();
    }
    EXPECT_EQ(world.bytes_sent() - before, simulated.bytes_sent / kRanks);
  });
}

TEST(DataParallel, DroppedGradientsAreTheSame) {
  auto all = examples({8, 8}, 4);
  auto expected = train_alone(all, 5, 256);
  run_threads(2, [&](Communicator& world) {
    auto net = small_net(256);
    auto parallel = data_parallel(*net, world);
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    for (int step = 0; step < 5; ++step) {
      parallel.zero_grad();
      loss_on(net, part(all, 4 * world.rank(), 4 * world.rank() + 4)).backward();
      optimizer.step();
    }
    expect_close(weights(net), expected, 2e-5, "zero_grad that drops");
  });
}

TEST(DataParallel, NoSyncAccumulates) {
  auto all = examples({12, 8}, 4);
  auto alone = small_net();
  for (int k = 0; k < 3; ++k) loss_on(alone, part(all, 4 * k, 4 * k + 4)).backward();
  run_threads(2, [&](Communicator& world) {
    auto net = small_net();
    auto parallel = data_parallel(net, world);
    auto half = [&](int k) { return part(all, 4 * k + 2 * world.rank(), 4 * k + 2 * world.rank() + 2); };
    {
      auto quiet = parallel.no_sync();
      loss_on(net, half(0)).backward();
      loss_on(net, half(1)).backward();
    }
    loss_on(net, half(2)).backward();
    expect_close(gradients(net), gradients(alone), 1e-5, "accumulated");

    parallel.zero_grad();
    {
      auto quiet = parallel.no_sync();
      for (int k = 0; k < 3; ++k) loss_on(net, half(k)).backward();
    }
    parallel.exchange();
    expect_close(gradients(net), gradients(alone), 1e-5, "exchanged by hand");
  });
}

TEST(DataParallel, JoinTakesTheMeanOverWhoeverHasSamples) {
  // Rank 0 has 1 batch, rank 1 has 2, rank 2 has 4, of 2 samples each but the last of 1.
  auto all = examples({14, 8}, 4);
  std::vector<std::vector<Examples>> batches{{part(all, 0, 2)},
                                             {part(all, 2, 4), part(all, 4, 6)},
                                             {part(all, 6, 8), part(all, 8, 10), part(all, 10, 12), part(all, 12, 13)}};
  auto alone = small_net();
  torch::optim::SGD reference(alone->parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    std::vector<torch::Tensor> x, y;
    for (auto& mine : batches) {
      if (step >= static_cast<int>(mine.size())) continue;
      x.push_back(mine[step].x);
      y.push_back(mine[step].y);
    }
    reference.zero_grad();
    loss_on(alone, {torch::cat(x), torch::cat(y)}).backward();
    reference.step();
  }
  run_threads(3, [&](Communicator& world) {
    auto net = small_net();
    auto parallel = data_parallel(net, world);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    {
      auto uneven = parallel.join();
      for (auto& batch : batches[world.rank()]) {
        optimizer.zero_grad();
        parallel.set_samples(static_cast<double>(batch.x.size(0)));
        loss_on(net, batch).backward();
        optimizer.step();
      }
    }
    expect_close(weights(net), weights(alone), 1e-5, "joined");
    // And afterwards everyone is back.
    parallel.zero_grad();
    loss_on(net, part(all, 0, 2)).backward();
    EXPECT_EQ(parallel.unused().size(), 0u);
  });
}

// A gradient that lies in the heap on one rank and is missing on the other, in the bucket that leaves last.
TEST(DataParallel, ARankWithNothingMeetsLargeGradientsInPlace) {
  run_threads(2, [&](Communicator& world) {
    torch::nn::Linear net(torch::nn::LinearOptions(256, 256).bias(false));
    DataParallelOptions options;
    options.bucket_plan = "tensor";
    auto parallel = data_parallel(net, world, options);
    for (int step = 0; step < 3; ++step) {
      parallel.zero_grad();
      if (world.rank() == 0) {
        net->forward(torch::ones({1, 256})).sum().backward();
      } else {
        parallel.contribute_nothing();
      }
      EXPECT_EQ(net->weight.grad().min().item<float>(), 0.5f);
      EXPECT_EQ(net->weight.grad().max().item<float>(), 0.5f);
    }
  });
}

// What a hook's exchange costs nobody can rehearse: a plan by measured costs takes an all-reduce's.
TEST(DataParallel, AHookGoesWithAMeasuredPlan) {
  run_threads(2, [&](Communicator& world) {
    auto net = small_net();
    DataParallelOptions options;
    options.bucket_plan = "optimal";
    sync::BucketAllReduce exchange(world);
    options.hook = [&](const sync::Bucket& bucket) { return exchange.start(bucket, sync::Turn::in_line); };
    auto parallel = data_parallel(net, world, options);
    for (int step = 0; step < 10; ++step) {
      loss_on(net, examples({4, 8}, 4)).backward();
      parallel.zero_grad();
    }
    EXPECT_GE(parallel.bucket_count(), 1u);
  });
}

TEST(DataParallel, AHookSeesEveryGradientOnceAndInOrder) {
  run_threads(2, [&](Communicator& world) {
    auto net = small_net();
    std::vector<int> indices;
    std::size_t elements = 0;
    DataParallelOptions options;
    options.bucket_plan = "cap:0.002";
    sync::BucketAllReduce exchange(world);
    options.hook = [&](const sync::Bucket& bucket) {
      indices.push_back(bucket.index);
      for (const auto& segment : bucket.segments) elements += segment.count;
      return exchange.start(bucket, sync::Turn::in_line);
    };
    auto parallel = data_parallel(net, world, options);
    loss_on(net, examples({4, 8}, 4)).backward();
    EXPECT_TRUE(std::ranges::is_sorted(indices));
    std::size_t expected = 0;
    for (auto& parameter : net->parameters()) expected += parameter.numel();
    EXPECT_EQ(elements, expected);
  });
}

TEST(DataParallel, OneRankWakesNoThreadForItsBuckets) {
  run_threads(1, [&](Communicator& world) {
    auto net = small_net();
    DataParallelOptions options;
    options.threads = 1;  // so that wherever this runs on more than one core one is spare
    auto parallel = data_parallel(net, world, options);
    EXPECT_EQ(parallel.turn(), sync::Turn::in_line);
  });
}

TEST(DataParallel, WhatRanksTellIsSummed) {
  run_threads(3, [&](Communicator& world) {
    auto net = small_net();
    auto parallel = data_parallel(net, world);
    parallel.gradients().tell({1, static_cast<float>(world.rank()), 0, 0});
    loss_on(net, examples({4, 8}, 4)).backward();
    EXPECT_THAT(parallel.gradients().told(), ElementsAre(3, 3, 0, 0));
  });
}

TEST(DataParallel, TheModelIsItsOwnersAgainAfterwards) {
  run_threads(2, [&](Communicator& world) {
    auto net = small_net();
    { auto parallel = data_parallel(net, world); }
    loss_on(net, part(examples({4, 8}, 4), world.rank(), world.rank() + 1)).backward();  // would wait if still hooked
    world.barrier();
  });
}

TEST(DataParallel, BatchNormOverAllRanksEqualsOneWorker) {
  auto all = examples({12, 2, 6, 6}, 5);
  auto alone = norm_net();
  torch::optim::SGD reference(alone->parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    reference.zero_grad();
    loss_on(alone, all).backward();
    reference.step();
  }
  std::vector<torch::Tensor> statistics = alone->buffers();
  for (int ranks : {2, 3}) {
    run_threads(ranks, [&](Communicator& world) {
      auto net = norm_net();
      DataParallelOptions options;
      options.sync_batch_norm = true;
      auto parallel = data_parallel(net, world, options);
      torch::optim::SGD optimizer(net->parameters(), 0.1);
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        loss_on(net, part(all, world.rank() * 12 / ranks, (world.rank() + 1) * 12 / ranks)).backward();
        optimizer.step();
      }
      expect_close(weights(net), weights(alone), 2e-4, "weights");
      auto here = net->buffers();
      for (std::size_t k = 0; k < here.size(); ++k) {
        EXPECT_LT((here[k] - statistics[k]).abs().max().item<double>(), 2e-4) << "statistic " << k;
      }
      net->eval();
      EXPECT_NO_THROW(net->forward(all.x));
    });
  }
}

// Every codec, in buckets that are planned anew on the way: all ranks end with the same weights, near those of no
// codec.
TEST(DataParallel, GradientsTravelAsCodes) {
  constexpr int kSteps = 12;
  auto all = examples({12, 8}, 4);
  auto expected = train_alone(all, kSteps, 64);
  double start = 0, end = 0;
  {
    auto net = small_net(64);
    start = loss_on(net, all).item<double>();
  }
  for (const auto& kind : compress::codecs()) {
    for (auto turn : {sync::Turn::in_line, sync::Turn::background}) {
      SCOPED_TRACE(kind.name);
      run_threads(3, [&](Communicator& world) {
        auto net = small_net(64);
        DataParallelOptions options;
        options.compress = {.rules = {kind.name}, .momentum = 0.9};
        options.turn = turn;
        auto parallel = data_parallel(net, world, options);
        const double momentum = kind.takes_momentum ? 0 : 0.9;
        torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(momentum));
        auto share = part(all, world.rank() * 4, world.rank() * 4 + 4);
        for (int step = 0; step < kSteps; ++step) {
          optimizer.zero_grad();
          loss_on(net, share).backward();
          optimizer.step();
        }
        auto mine = torch::cat([&] {
                      std::vector<torch::Tensor> flat;
                      for (const auto& tensor : weights(net)) flat.push_back(tensor.flatten());
                      return flat;
                    }())
                        .contiguous();
        auto mean = mine.clone();
        world.all_reduce(View(mean.data_ptr(), static_cast<std::size_t>(mean.numel()), DType::f32), Op::max);
        EXPECT_TRUE(torch::equal(mean, mine));
        if (kind.name == "fp16" || kind.name == "bf16" || kind.name == "int8") {
          expect_close(weights(net), expected, 0.02, std::string(kind.name));
        }
        if (world.rank() == 0) end = loss_on(net, all).item<double>();
        ASSERT_EQ(parallel.compressed().has_value(), &kind != compress::codecs().data());
        if (const auto codes = parallel.compressed(); codes && kind.name != "threshold") {  // these all exceed it
          EXPECT_LT(codes->bytes_after, codes->bytes_before);
        }
      });
      EXPECT_LT(end, start);
    }
  }
}

}  // namespace
}  // namespace trireme
