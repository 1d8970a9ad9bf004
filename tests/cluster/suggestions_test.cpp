// Every family of names up to here: a slip of the finger is answered by the name that was meant.
#include <gtest/gtest.h>

#include "tests/typos.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/planner/search.h"
#include "trireme/cluster/topology.h"
#include "trireme/collective/schedule.h"
#include "trireme/compress/codecs.h"
#include "trireme/mesh/choice/mesh_choice.h"
#include "trireme/mesh/schedule.h"
#include "trireme/net/world.h"
#include "trireme/ps/clock.h"
#include "trireme/ps/server/update.h"
#include "trireme/sync/exchange/bucket_plan.h"
#include "trireme/sync/strategies.h"

namespace trireme::cluster {
namespace {

using test::expect_suggestions;
using test::names_in;

TEST(Suggestions, Collectives) {
  // Without its dash it is the same.
  expect_suggestions({"broadcast", "reduce", "scatter", "gather", "barrier"},
                     [](const std::string& typo) { parse_collective(typo); });
}

TEST(Suggestions, Algorithms) {
  std::vector<std::string_view> names;
  for (const auto* algorithm : algorithms_for(Collective::all_reduce)) names.push_back(algorithm->name);
  expect_suggestions(names, [](const std::string& typo) { find_algorithm(Collective::all_reduce, typo); });
}

TEST(Suggestions, Strategies) {
  expect_suggestions(names_in(sync::strategies()), [](const std::string& typo) { sync::Choice::parse(typo); });
}

TEST(Suggestions, SettingsOfStrategies) {
  expect_suggestions({"momentum", "warmup", "rate"}, [](const std::string& typo) {
    static const std::vector<Setting> settings{
        {"momentum", "0.9", "", number(0, 1)}, {"warmup", "0", "", number(0, 1)}, {"rate", "1", "", number(0, 1)}};
    Values("strategy diloco", settings, typo + "=1");
  });
}

TEST(Suggestions, Codecs) {
  expect_suggestions(names_in(compress::codecs()), [](const std::string& typo) { compress::Choice::parse(typo); });
}

TEST(Suggestions, PipelineSchedules) {
  expect_suggestions(names_in(pipelines::kinds()), [](const std::string& typo) { pipelines::find_kind(typo); });
}

TEST(Suggestions, BucketPlans) {
  expect_suggestions(names_in(sync::bucket_plans()), [](const std::string& typo) { sync::parse_bucket_plan(typo); });
}

TEST(Suggestions, Topologies) {
  expect_suggestions(names_in(topology_kinds()), [](const std::string& typo) { find_topology(typo); });
}

TEST(Suggestions, Objectives) {
  expect_suggestions({"step", "accuracy", "cost"}, [](const std::string& typo) { parse_objective(typo); });
}

TEST(Suggestions, UpdatesAndConsistencyOfServers) {
  const auto names = ps::update_names();
  expect_suggestions(names, [](const std::string& typo) { ps::make_update({.name = typo}, {}); });
  expect_suggestions({"bsp", "async"}, [](const std::string& typo) { ps::parse_consistency(typo); });
}

TEST(Suggestions, Transports) {
  expect_suggestions({"auto", "inproc", "shm", "tcp"}, [](const std::string& typo) {
    net::WorldSpec spec;
    spec.size = 1;
    net::connect(spec, {.transport = typo});
  });
}

TEST(Suggestions, KeysOfClusterFiles) {
  expect_suggestions({"workers", "count", "memory", "compute"}, [](const std::string& typo) {
    try {
      parse_cluster("[[node]]\n" + typo + " = 1\n", "c.toml");
    } catch (const DataError& error) {
      throw ConfigError(error.what());
    }
  });
}

}  // namespace
}  // namespace trireme::cluster
