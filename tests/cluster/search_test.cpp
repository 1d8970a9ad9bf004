#include "trireme/cluster/planner/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/cluster/sim/job/simulate.h"
#include "trireme/collective/cost/link_model.h"
#include "trireme/collective/schedule.h"
#include "trireme/sync/compatibility.h"
#include "trireme/sync/exchange/bucket_plan.h"

namespace trireme::cluster {
namespace {

using ::testing::HasSubstr;

Question small_question() {
  Question question;
  question.cluster = flat_cluster(4, 1e-4, 1.25e8, 5e-11);
  question.profile = example_profile("tiny");
  question.space = {{"allreduce", "local-sgd:H=4", "ps-bsp", "gossip-dpsgd"},
                    {"none", "fp16", "topk", "dgc"},
                    {"auto", "ring", "tree"},
                    {"optimal", "one", "tensor"},
                    {2, 4},
                    {1, 2},
                    false};
  question.top = 1000;
  question.steps = 4;
  return question;
}

std::map<std::string, std::string> by_key(const Option& option) {
  return {option.settings.begin(), option.settings.end()};
}

// Every combination that trireme train takes, simulated one by one.
double best_of_all(const Question& question) {
  double best = 0;
  const Space& space = question.space;
  for (int workers : space.workers) {
    for (const auto& strategy : space.strategies) {
      for (const auto& codec : space.codecs) {
        if (sync::refused({.strategy = strategy, .compress = codec})) continue;
        for (const auto& algorithm : space.algorithms) {
          for (const auto& plan : space.bucket_plans) {
            for (int lanes : space.lanes) {
              Job job;
              job.profile = &question.profile;
              job.strategy = sync::Choice::parse(strategy);
              job.compress = codec;
              job.algorithm = algorithm;
              job.bucket_plan = plan;
              job.lanes = lanes;
              job.workers = workers;
              job.steps = question.steps;
              best = std::max(best, simulate(question.cluster, job).samples_per_s);
            }
          }
        }
      }
    }
  }
  return best;
}

TEST(Search, FindsTheBestOfAnExhaustiveSpace) {
  Question question = small_question();
  const double best = best_of_all(question);
  const Found pruned = search(question);
  question.exhaustive = true;
  const Found all = search(question);
  // What gains less than half a per cent over the plain settings is not worth them.
  EXPECT_GE(all.options[0].samples_per_s, 0.995 * best);
  EXPECT_GE(pruned.options[0].samples_per_s, 0.995 * best);
  EXPECT_LT(pruned.judged, all.judged);
  EXPECT_EQ(pruned.considered, all.considered);
}

TEST(Search, AccountsForEveryPlan) {
  for (bool exhaustive : {false, true}) {
    Question question = small_question();
    question.exhaustive = exhaustive;
    question.most = 40;
    question.top = 3;
    const Found found = search(question);
    std::size_t out = found.judged;
    for (const auto& one : found.left_out) {
      EXPECT_FALSE(one.why.empty());
      out += one.plans;
    }
    EXPECT_EQ(out, found.considered);
    EXPECT_LE(found.judged, 40u);
    EXPECT_LE(found.options.size(), 3u);
  }
}

TEST(Search, OneQuestionHasOneAnswer) {
  Question question = small_question();
  question.cluster.stragglers.push_back({Straggler::Kind::transient, {}, 2, 0.5, 0.1, 0.1, {}});
  const Found a = search(question), b = search(question);
  ASSERT_EQ(a.options.size(), b.options.size());
  for (std::size_t i = 0; i < a.options.size(); ++i) {
    EXPECT_EQ(a.options[i].settings, b.options[i].settings);
    EXPECT_EQ(a.options[i].step_s, b.options[i].step_s);
    EXPECT_EQ(a.options[i].why, b.options[i].why);
  }
  EXPECT_EQ(a.prediction, b.prediction);
}

TEST(Search, RanksByItsObjective) {
  Question question = small_question();
  question.space.strategies = {"allreduce"};
  question.space.codecs = {"none"};
  question.space.workers = {1, 2, 4};
  question.profile.samples = 50000;
  question.profile.noise = {.batch = 32, .gradient_square = 1, .trace = 1e6, .steps = 10};
  question.cluster.nodes[0].price_per_h = 3.6;
  auto workers = [](const Found& found) { return by_key(found.options[0]).at("run.workers"); };
  auto check_order = [&](double Option::*member, const Found& found) {
    for (std::size_t i = 1; i < found.options.size(); ++i) {
      EXPECT_LE(found.options[i - 1].*member, found.options[i].*member);
    }
  };
  // Many workers make more samples; each costs its price, and the exchange is what all but one pay for.
  const Found step = search(question);
  EXPECT_EQ(workers(step), "4");
  question.objective = Objective::cost;
  const Found cost = search(question);
  EXPECT_EQ(workers(cost), "1");
  check_order(&Option::price, cost);
  EXPECT_NEAR(cost.options[0].price, 1e-3 * cost.options[0].seconds_to_accuracy, 1e-9);
  question.objective = Objective::accuracy;
  Found accuracy = search(question);
  EXPECT_EQ(workers(accuracy), "4");
  check_order(&Option::seconds_to_accuracy, accuracy);
  // Where a small batch tells the gradient well enough, more workers tell the same again.
  question.profile.noise.trace = 1;
  accuracy = search(question);
  EXPECT_EQ(workers(accuracy), "1");
  const auto& option = accuracy.options[0];
  EXPECT_NEAR(option.seconds_to_accuracy, 4 * 50000 / option.samples_per_s * (1 + question.profile.batch), 1e-6);
  question.cluster.nodes[0].price_per_h = 0;
  question.objective = Objective::cost;
  EXPECT_THROW(search(question), ConfigError);
}

TEST(Search, MemoryComesFirst) {
  Question question;
  question.cluster = flat_cluster(4, 1e-5, 1.25e9, 5e-11);
  question.profile = example_profile("gpt-like");
  question.space.workers = {4};
  question.steps = 3;
  question.space.codecs = {"none"};
  question.space.strategies = {"allreduce"};
  const Found free = search(question);
  ASSERT_FALSE(free.options.empty());
  std::uint64_t plain = 0;
  for (const auto& option : free.options) {
    if (!by_key(option).contains("parallel.mesh")) plain = option.memory_bytes;
  }
  ASSERT_GT(plain, 0u);
  question.memory_bytes = plain / 2;
  const Found tight = search(question);
  for (const auto& option : tight.options) {
    EXPECT_LE(option.memory_bytes, question.memory_bytes);
    EXPECT_TRUE(by_key(option).contains("parallel.mesh"));
  }
  question.memory_bytes = 1 << 20;
  try {
    search(question);
    FAIL() << "nothing fits in a MiB";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no plan fits: the smallest needs"));
  }
}

// Whatever is offered, trireme train takes: the rules of train's check() that bear on what is searched.
TEST(Search, OffersOnlyWhatCanRun) {
  LinkModel model;
  for (const auto& cluster : {flat_cluster(3, 1e-4, 1.25e8, 5e-11), host_cluster(4, model)}) {
    Question question;
    question.cluster = cluster;
    question.profile = example_profile("tiny");
    question.steps = 2;
    question.top = 1000;
    const Found found = search(question);
    EXPECT_GT(found.options.size(), 20u);
    for (const auto& option : found.options) {
      auto settings = by_key(option);
      sync::Combination combination{.strategy = settings.at("sync.strategy"), .compress = settings.at("sync.compress")};
      if (settings.contains("run.launch")) combination.launch = settings.at("run.launch");
      if (settings.contains("parallel.mesh")) {
        combination.on_mesh = true;
        combination.pipeline = settings.at("parallel.pipeline");
        combination.shard = settings.at("parallel.shard");
        EXPECT_EQ(std::to_string(mesh::parse_mesh(settings.at("parallel.mesh")).size()), settings.at("run.workers"));
      } else {
        EXPECT_NO_THROW(sync::parse_bucket_plan(settings.at("exchange.bucket_plan")));
        const auto& algorithm = settings.at("exchange.algorithm");
        if (algorithm != "auto") {
          const bool shared = find_algorithm(Collective::all_reduce, algorithm).shared;
          EXPECT_TRUE(!shared || cluster.shares_memory()) << algorithm;
        }
      }
      EXPECT_EQ(sync::refused(combination), std::nullopt);
      EXPECT_GT(option.step_s, 0);
      EXPECT_GT(option.samples_per_s, 0);
      EXPECT_GT(option.memory_bytes, 0u);
      EXPECT_FALSE(option.why.empty());
    }
    PlanFile plan{.objective = "step", .chosen = found.options[0], .prediction = found.prediction};
    plan.alternatives = found.options;
    EXPECT_EQ(to_json(parse_plan(to_json(plan), "plan.json")), to_json(plan));
  }
}

TEST(Search, RefusesWhatThereIsNot) {
  auto error = [](auto change) -> std::string {
    Question question = small_question();
    change(question);
    try {
      search(question);
    } catch (const ConfigError& refusal) {
      return refusal.what();
    }
    return "";
  };
  EXPECT_THAT(error([](Question& q) { q.space.strategies = {"alreduce"}; }), HasSubstr("allreduce"));
  EXPECT_THAT(error([](Question& q) { q.space.codecs = {"gzip"}; }), HasSubstr("gzip"));
  EXPECT_THAT(error([](Question& q) { q.space.workers = {5}; }), HasSubstr("5 workers"));
  EXPECT_THAT(error([](Question& q) { q.space.algorithms = {"sing"}; }), HasSubstr("sing"));
  EXPECT_THROW(parse_objective("speed"), ConfigError);
  EXPECT_EQ(parse_objective("cost"), Objective::cost);
}

}  // namespace
}  // namespace trireme::cluster
