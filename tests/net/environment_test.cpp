// The environments launchers leave, as tables.
#include "trireme/net/join/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "trireme/base/error.h"
#include "trireme/net/socket.h"

namespace trireme::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment from(const Variables& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

struct GoodCase {
  const char* name;
  Variables variables;
  int rank, size, local_rank, local_size;
  const char* launcher;
  const char* job;  // nullptr: any
  const char* rendezvous;
  int listen_fd = -1;
};

const std::vector<GoodCase>& good_cases() {
  static const std::vector<GoodCase> cases{
      {"nothing", {}, 0, 1, 0, 1, "none", nullptr, ""},
      {"empty values", {{"RANK", ""}, {"WORLD_SIZE", ""}}, 0, 1, 0, 1, "none", nullptr, ""},
      {"address alone means nothing", {{"MASTER_ADDR", "host"}}, 0, 1, 0, 1, "none", nullptr, ""},
      {"our launcher, one host",
       {{"RANK", "0"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "4"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", "29500"},
        {"TRIREME_JOB", "j1"},
        {"TRIREME_RDZV", "127.0.0.1:4000"},
        {"TRIREME_RDZV_FD", "7"}},
       0,
       4,
       0,
       4,
       "trireme run",
       "j1",
       "127.0.0.1:4000",
       7},
      {"our launcher, the descriptor is rank 0's",
       {{"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"TRIREME_JOB", "j1"},
        {"TRIREME_RDZV", "[::1]:4000"},
        {"TRIREME_RDZV_FD", "7"}},
       1,
       2,
       1,
       2,
       "trireme run",
       "j1",
       "[::1]:4000"},
      {"our launcher, two hosts",
       {{"RANK", "3"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"TRIREME_JOB", "j"},
        {"TRIREME_RDZV", "10.0.0.1:4000"}},
       3,
       4,
       1,
       2,
       "trireme run",
       "j",
       "10.0.0.1:4000"},
      {"torchrun, one host: no address needed",
       {{"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "box"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RUN_ID", "none"}},
       1,
       2,
       1,
       2,
       "torchrun",
       "torchrun none 0 box:29500",
       ""},
      {"torchrun, the agent owns the port",
       {{"RANK", "2"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "box"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCHELASTIC_RUN_ID", "r"},
        {"TORCHELASTIC_RESTART_COUNT", "3"}},
       2,
       4,
       0,
       2,
       "torchrun",
       "torchrun r 3 box:29501",
       "box:29501"},
      {"torchrun's variables by hand, IPv6",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "5"}},
       1,
       2,
       0,
       1,
       "torchrun",
       nullptr,
       "[fd00::1]:5"},
      {"a file",
       {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"TRIREME_RDZV", "file:/tmp/meet"}},
       1,
       3,
       1,
       3,
       "file",
       "file:/tmp/meet",
       "file:/tmp/meet"},
      {"an address elsewhere, nothing said of hosts",
       {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"TRIREME_RDZV", "10.0.0.1:4000"}},
       1,
       3,
       0,
       1,
       "torchrun",
       "torchrun - 0 10.0.0.1:4000",
       "10.0.0.1:4000"},
      {"one rank by hand", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, 0, 1, "torchrun", nullptr, ""},
      {"Open MPI, one host",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMIX_NAMESPACE", "149"},
        {"PMIX_RANK", "1"}},
       1,
       2,
       1,
       2,
       "mpirun",
       "openmpi 149",
       ""},
      {"Open MPI, hosts, address and port given",
       {{"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
        {"PMIX_NAMESPACE", "149"},
        {"MASTER_ADDR", "n0"},
        {"MASTER_PORT", "77"}},
       5,
       8,
       1,
       4,
       "mpirun",
       "openmpi 149",
       "n0:77"},
      {"Open MPI with our rendezvous",
       {{"OMPI_COMM_WORLD_RANK", "5"},
        {"OMPI_COMM_WORLD_SIZE", "8"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
        {"PMIX_NAMESPACE", "149"},
        {"TRIREME_RDZV", "n0:78"},
        {"TRIREME_JOB", "mine"}},
       5,
       8,
       1,
       4,
       "mpirun",
       "mine",
       "n0:78"},
      {"Hydra, one host",
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "6"}},
       1,
       2,
       1,
       2,
       "mpirun",
       nullptr,
       ""},
      {"Hydra, hosts",
       {{"PMI_RANK", "3"},
        {"PMI_SIZE", "4"},
        {"MPI_LOCALRANKID", "1"},
        {"MPI_LOCALNRANKS", "2"},
        {"MASTER_ADDR", "n0"},
        {"MASTER_PORT", "99"}},
       3,
       4,
       1,
       2,
       "mpirun",
       "pmi n0:99",
       "n0:99"},
      {"Slurm, one host",
       {{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_JOB_ID", "42"},
        {"SLURM_STEP_ID", "3"},
        {"SLURM_JOB_NODELIST", "n7"},
        {"SLURM_STEP_TASKS_PER_NODE", "2"},
        {"SLURM_NODEID", "0"}},
       1,
       2,
       1,
       2,
       "srun",
       "slurm 42.3",
       ""},
      {"Slurm before anything is told of nodes",
       {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "42"}},
       1,
       2,
       1,
       2,
       "srun",
       "slurm 42.0",
       ""},
      {"torchrun inside Slurm is torchrun",
       {{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"},
        {"SLURM_JOB_ID", "42"},
        {"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "h"},
        {"MASTER_PORT", "1"}},
       1,
       2,
       1,
       2,
       "torchrun",
       nullptr,
       ""},
  };
  return cases;
}

TEST(Environment, LaunchersAreUnderstood) {
  for (const auto& c : good_cases()) {
    SCOPED_TRACE(c.name);
    WorldSpec spec;
    ASSERT_NO_THROW(spec = world_from_environment(from(c.variables)));
    EXPECT_EQ(spec.rank, c.rank);
    EXPECT_EQ(spec.size, c.size);
    EXPECT_EQ(spec.local_rank, c.local_rank);
    EXPECT_EQ(spec.local_size, c.local_size);
    EXPECT_EQ(spec.launcher, c.launcher);
    EXPECT_EQ(spec.rendezvous, c.rendezvous);
    EXPECT_EQ(spec.listen_fd, c.listen_fd);
    EXPECT_FALSE(spec.job.empty());
    if (c.job) {
      EXPECT_EQ(spec.job, c.job);
    }
  }
}

TEST(Environment, SlurmAcrossHostsMeetsAtTheFirst) {
  Variables variables{{"SLURM_PROCID", "4"},
                      {"SLURM_NTASKS", "5"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_JOB_ID", "42"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_NODEID", "2"},
                      {"SLURM_STEP_NODELIST", "gpu[08-10]"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
  auto spec = world_from_environment(from(variables));
  EXPECT_EQ(spec.local_size, 1);
  auto [host, port] = parse_host_port(spec.rendezvous, "test");
  EXPECT_EQ(host, "gpu08");
  EXPECT_GE(port, 20000);
  EXPECT_LT(port, 30000);
  // Every rank derives the same port, another job (most likely) another.
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_NODEID"] = "0";
  EXPECT_EQ(world_from_environment(from(variables)).rendezvous, spec.rendezvous);
  variables["SLURM_JOB_ID"] = "43";
  EXPECT_NE(world_from_environment(from(variables)).rendezvous, spec.rendezvous);
}

struct BadCase {
  Variables variables;
  std::vector<const char*> says;
};

TEST(Environment, WhatIsWrongIsNamed) {
  const Variables rank{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"TRIREME_JOB", "j"}};
  auto with = [&](Variables more) {
    Variables all = rank;
    for (auto& [name, value] : more) all[name] = value;
    return all;
  };
  const std::vector<BadCase> cases{
      {{{"RANK", "0"}}, {"RANK is set but WORLD_SIZE is not"}},
      {{{"WORLD_SIZE", "2"}}, {"WORLD_SIZE is set but RANK is not"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, {"not told where rank 0 is", "MASTER_ADDR", "TRIREME_RDZV"}},
      {with({{"RANK", "2"}}), {"RANK", "'2'"}},
      {with({{"RANK", "-1"}}), {"RANK", "'-1'"}},
      {with({{"RANK", "one"}}), {"RANK", "'one'"}},
      {with({{"WORLD_SIZE", "0"}}), {"WORLD_SIZE", "'0'"}},
      {with({{"WORLD_SIZE", "99999999999999999999"}}), {"WORLD_SIZE"}},
      {with({{"LOCAL_WORLD_SIZE", "3"}}), {"LOCAL_WORLD_SIZE", "'3'"}},
      {with({{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}}), {"LOCAL_RANK", "'1'"}},
      {with({{"MASTER_ADDR", "h"}}), {"MASTER_ADDR is set but MASTER_PORT is not"}},
      {with({{"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}), {"MASTER_PORT", "'70000'"}},
      {with({{"MASTER_ADDR", "h h"}, {"MASTER_PORT", "7000"}}), {"MASTER_ADDR", "h h"}},
      {with({{"TRIREME_RDZV", "nowhere"}}), {"TRIREME_RDZV", "'nowhere'", "host:port"}},
      {with({{"TRIREME_RDZV", "h:0"}}), {"TRIREME_RDZV", "'0'"}},
      {with({{"TRIREME_RDZV", "::1:80"}}), {"TRIREME_RDZV", "[::1]:port"}},
      {with({{"TRIREME_RDZV", "file:here"}}), {"TRIREME_RDZV", "absolute"}},
      {with({{"TRIREME_RDZV_FD", "x"}}), {"TRIREME_RDZV_FD", "'x'"}},
      {with({{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}}), {"several hosts", "MASTER_ADDR", "TRIREME_RDZV"}},
      {{{"TRIREME_RDZV", "h:1"}}, {"TRIREME_RDZV is set but RANK is not"}},
      {{{"OMPI_COMM_WORLD_RANK", "1"}}, {"OMPI_COMM_WORLD_SIZE"}},
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMIX_NAMESPACE", "1"}},
       {"mpirun", "several hosts", "MASTER_ADDR"}},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "x"}}, {"PMI_SIZE", "'x'"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "1"}}, {"SLURM_NTASKS"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}, {"SLURM_JOBID"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "1"}, {"SLURM_JOB_NODELIST", "n[1-"}},
       {"SLURM_JOB_NODELIST", "'n[1-'"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "1"}, {"SLURM_STEP_TASKS_PER_NODE", "2(y3)"}},
       {"SLURM_STEP_TASKS_PER_NODE"}},
  };
  for (const auto& c : cases) {
    try {
      auto spec = world_from_environment(from(c.variables));
      ADD_FAILURE() << "accepted; expected: " << c.says[0];
    } catch (const ConfigError& error) {
      for (const char* part : c.says) EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }
}

TEST(Environment, OptionsForConnecting) {
  auto options = connect_options_from_environment(from({}));
  EXPECT_EQ(options.transport, "auto");
  EXPECT_EQ(options.timeout_s, 60);
  EXPECT_FALSE(options.payload_checksum);
  options = connect_options_from_environment(from({{"TRIREME_TRANSPORT", "tcp"},
                                                   {"TRIREME_BIND", "[::1]"},
                                                   {"TRIREME_CHECKSUM", "1"},
                                                   {"TRIREME_CONNECT_TIMEOUT", "2.5"}}));
  EXPECT_EQ(options.transport, "tcp");
  EXPECT_EQ(options.bind, "::1");
  EXPECT_TRUE(options.payload_checksum);
  EXPECT_EQ(options.timeout_s, 2.5);
  EXPECT_THROW(connect_options_from_environment(from({{"TRIREME_CHECKSUM", "yes"}})), ConfigError);
  EXPECT_THROW(connect_options_from_environment(from({{"TRIREME_CONNECT_TIMEOUT", "-1"}})), ConfigError);
  EXPECT_THROW(connect_options_from_environment(from({{"TRIREME_CONNECT_TIMEOUT", "soon"}})), ConfigError);
}

}  // namespace
}  // namespace trireme::net
