// Searches that prune against ones that do not, and coarse simulations against exact ones.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "trireme/base/error.h"
#include "trireme/cluster/network.h"
#include "trireme/cluster/planner/search.h"
#include "trireme/cluster/sim/collective_time.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/mesh/schedule.h"
#include "trireme/sync/compatibility.h"

namespace trireme::cluster {
namespace {

Cluster small_fat_tree(int nodes) {
  return parse_cluster(R"(
[topology]
kind = "fat-tree"
radix = 32
levels = 2
oversubscription = 4
switch = "600ns"
[[link]]
name = "25gbit"
alpha = "8us"
bandwidth = "25gbit"
[[node]]
count = )" + std::to_string(nodes) +
                           R"(
cores = 16
memory = "80G"
gamma = "0.01ns"
)",
                       "test");
}

Question meshed_question(double bytes_per_s, std::string_view profile) {
  Question question;
  question.cluster = flat_cluster(4, 5e-5, bytes_per_s, 5e-11);
  question.profile = example_profile(profile);
  question.space = {{"allreduce", "local-sgd:H=4", "ps-bsp"},
                    {"none", "fp16", "topk"},
                    {"auto", "ring"},
                    {"optimal"},
                    {2, 4},
                    {1},
                    true};
  question.most = 100000;
  question.top = 1;
  question.steps = 2;
  return question;
}

// Every mesh of four workers with every strategy and codec, one by one.
double best_mesh(const Question& question) {
  double best = 0;
  for (const mesh::MeshShape shape :
       {mesh::MeshShape{2, 2, 1}, mesh::MeshShape{1, 4, 1}, mesh::MeshShape{2, 1, 2}, mesh::MeshShape{1, 2, 2}}) {
    for (const auto& kind : pipelines::kinds()) {
      for (int micro = 2; micro <= question.profile.batch; micro *= 2) {
        for (const auto& strategy : question.space.strategies) {
          for (const auto& codec : question.space.codecs) {
            if (!kind.synchronous ||
                sync::refused(
                    {.strategy = strategy, .compress = codec, .on_mesh = true, .pipeline = std::string(kind.name)})) {
              continue;
            }
            Job job;
            job.profile = &question.profile;
            job.strategy = sync::Choice::parse(strategy);
            job.compress = codec;
            job.mesh = shape;
            job.micro_batches = micro;
            job.schedule = std::string(kind.name);
            job.steps = question.steps;
            try {
              best = std::max(best, simulate(question.cluster, job).samples_per_s);
            } catch (const ConfigError&) {
              // Not a mesh for this model.
            }
          }
        }
      }
    }
  }
  return best;
}

TEST(SearchScale, PruningFindsWhatBruteForceFinds) {
  for (double bytes_per_s : {1e7, 1.25e9}) {
    for (auto profile : {"tiny", "wide-mlp"}) {
      Question question = meshed_question(bytes_per_s, profile);
      const Found pruned = search(question);
      question.exhaustive = true;
      const Found all = search(question);
      EXPECT_EQ(pruned.options[0].settings, all.options[0].settings) << profile << " " << bytes_per_s;
      EXPECT_EQ(pruned.options[0].step_s, all.options[0].step_s);
      EXPECT_LT(pruned.judged, all.judged / 2);
      EXPECT_EQ(pruned.considered, all.considered);
      EXPECT_GE(all.options[0].samples_per_s, 0.999 * best_mesh(question));
    }
  }
}

TEST(SearchScale, CoarseIsNearTheExact) {
  const Cluster cluster = small_fat_tree(288);
  const Network network(cluster);
  const Profile profile = example_profile("resnet50-like");
  for (const char* strategy : {"allreduce", "local-sgd:H=2", "ps-bsp"}) {
    for (const char* codec : {"none", "int8", "topk"}) {
      if (sync::refused({.strategy = strategy, .compress = codec})) continue;
      if (std::string_view(strategy) == "ps-bsp" && std::string_view(codec) != "none") continue;
      Job job;
      job.profile = &profile;
      job.strategy = sync::Choice::parse(strategy);
      job.compress = codec;
      job.steps = 1;
      job.noise = false;
      const double exact = simulate(network, job).step_s;
      job.coarse = true;
      EXPECT_NEAR(simulate(network, job).step_s / exact, 1, 0.15) << strategy << " " << codec;
    }
  }
}

TEST(SearchScale, AllPairsEndWhenTheirFlowsDo) {
  const Network network(small_fat_tree(288));
  const int ranks = network.ranks();
  for (Collective what : {Collective::all_gather, Collective::all_to_all}) {
    const Algorithm& naive = find_algorithm(what, "naive");
    const Call call{what, 0, ranks, 0, 5000, 5000};
    const std::vector<double> begins(static_cast<std::size_t>(ranks), 1.0);
    std::vector<double> ends(begins.size()), by_flows(begins.size());
    Traffic traffic, flowed;
    const auto quick = play(network, naive, call, 4, begins, ends, &traffic);
    const auto slow = play_by(Tier::flows, network, naive, call, 4, begins, by_flows, &flowed);
    EXPECT_NEAR(quick.end_s, slow.end_s, 1e-6 * (slow.end_s - 1));
    EXPECT_EQ(quick.messages, slow.messages);
    EXPECT_EQ(traffic.bytes, flowed.bytes);
  }
}

TEST(SearchScale, WhoSeesTheSameSharesWhatWasFound) {
  const Network network(flat_cluster(8, 1e-4, 1e8, 0));
  EXPECT_EQ(&network.first(4).memory(), &network.first(4).memory());
  EXPECT_EQ(&network.on({0, 2}).memory(), &network.on({0, 2}).memory());
  EXPECT_NE(&network.first(4).memory(), &network.memory());
  EXPECT_EQ(&network.first(8).memory(), &network.memory());
}

}  // namespace
}  // namespace trireme::cluster
