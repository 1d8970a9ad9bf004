// `trireme run --hosts ns:N`: emulated hosts, where they can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "tests/cli/emulation.h"
#include "tests/cli/outcome.h"
#include "tests/cli/started.h"

namespace trireme::test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

std::set<std::string> network_devices() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net")) names.insert(entry.path().filename());
  return names;
}

std::string own_namespace() { return std::filesystem::read_symlink("/proc/self/ns/net"); }

// Every namespace that a process lives in or holds open, as "net:[4026531840]".
std::set<std::string> network_namespaces() {
  std::set<std::string> found;
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    auto note = [&](const std::filesystem::path& link) {
      auto target = std::filesystem::read_symlink(link, gone).string();
      if (target.starts_with("net:[")) found.insert(target);
    };
    note(process.path() / "ns/net");
    for (const auto& fd : std::filesystem::directory_iterator(process.path() / "fd", gone)) note(fd.path());
  }
  return found;
}

struct Refused {
  std::string arguments, says;
};

TEST(RunHosts, SaysWhatCannotBe) {
  for (const auto& [arguments, says] : std::vector<Refused>{
           {"-n 3 --hosts ns:2", "3 workers cannot be spread evenly over 2 hosts"},
           {"-n 2 --hosts ns:0", "1 to 250"},
           {"-n 2 --hosts alpha,beta", "ns:N"},
           {"-n 2 --hosts ns:2 --transport shm", "memory does not cross hosts"},
           {"-n 2 --hosts ns:2 --bandwidth 100mbps", "10mbit, 100mbit, 1gbit"},
           {"-n 2 --hosts ns:2 --latency 3", "200us, 0.5ms"},
           {"-n 2 --hosts ns:2 --bind 127.0.0.1", "--bind"},
           {"-n 2 --hosts ns:2 --nnodes 2 --node-rank 0 --rdzv-endpoint localhost:1", "--nnodes"},
           {"-n 2 --bandwidth 100mbit", "--hosts ns:N"},
           {"-n 2 --latency 1ms", "--hosts ns:N"},
       }) {
    EXPECT_TRUE(refuses("run " + arguments + " -- true")) << arguments;
    EXPECT_THAT(run_trireme("run " + arguments + " -- true 2>&1").text, HasSubstr(says));
  }
}

TEST(RunHosts, SaysThatItNeedsRoot) {
  std::string without =
      ::geteuid() == 0 ? "run --no-prefix -- setpriv --bounding-set=-sys_admin " TRIREME_PROGRAM " " : "";
  auto run = run_trireme(without + "run -n 2 --hosts ns:2 -- true 2>&1");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.text, HasSubstr("--hosts makes network namespaces, which needs root"));
}

TEST(RunHosts, SpreadsTheWorkers) {
  TRIREME_NEEDS_EMULATION();
  auto before = network_devices();
  auto run = trireme_run(with_shell({"-n", "4", "--hosts", "ns:2", "--bandwidth", "12.5MB", "--no-prefix"},
                                    "echo $RANK $TRIREME_BIND $TRIREME_TRANSPORT $MASTER_ADDR $LOCAL_WORLD_SIZE "
                                    "$TRIREME_HOSTS $TRIREME_BANDWIDTH $TRIREME_LATENCY"),
                         {.env = {{"TRIREME_LATENCY", "stale"}}});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(
      lines_of(run.out),
      UnorderedElementsAre("0 10.77.0.1 tcp 10.77.0.1 4 ns:2 100mbit 0", "1 10.77.0.1 tcp 10.77.0.1 4 ns:2 100mbit 0",
                           "2 10.77.0.2 tcp 10.77.0.1 4 ns:2 100mbit 0", "3 10.77.0.2 tcp 10.77.0.1 4 ns:2 100mbit 0"));
  EXPECT_EQ(network_devices(), before);
}

TEST(RunHosts, LinksHaveTheirBandwidthInBothDirections) {
  TRIREME_NEEDS_EMULATION();
  for (int hosts : {2, 4}) {
    auto count = std::to_string(hosts);
    auto run = trireme_run(
        {"-n", count, "--hosts", "ns:" + count, "--bandwidth", "100mbit", "--no-prefix", "--", TRIREME_LINK_SPEED});
    ASSERT_EQ(run.code, 0) << run.err;
    auto lines = lines_of(run.out);
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(hosts)) << run.out;
    for (const auto& line : lines) {
      EXPECT_THAT(line, HasSubstr(" over tcp "));
      double rate = std::strtod(line.c_str() + std::string("rate ").size(), nullptr);
      EXPECT_GT(rate, 0.5 * 100e6) << line;
      EXPECT_LT(rate, 1.05 * 100e6) << line;
    }
  }
}

TEST(RunHosts, TcpIsTheSameWhateverTheMachineUses) {
  TRIREME_NEEDS_EMULATION();
  auto run =
      trireme_run({"-n", "2", "--hosts", "ns:2", "--no-prefix", "--", "ip", "-4", "route", "show", "dev", "eth0"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(lines_of(run.out), testing::SizeIs(2));
  EXPECT_THAT(lines_of(run.out), testing::Each(testing::ContainsRegex("^10\\.77\\.0\\.0/16 .*congctl (cubic|reno)")));
}

// How a job ends that is in full swing: by itself (0), or by a signal to the launcher.
class RunHostsEnd : public testing::TestWithParam<int> {};

TEST_P(RunHostsEnd, LeavesNothing) {
  TRIREME_NEEDS_EMULATION();
  auto devices = network_devices();
  Started program(
      with_shell({"run", "-n", "2", "--hosts", "ns:2", "--bandwidth", "10mbit", "--no-prefix"},
                 "readlink /proc/$$/ns/net; echo up; exec sleep " + std::string(GetParam() ? "60" : "0.3")));
  ASSERT_TRUE(poll_until(20, [&] { return lines_of(program.out()).size() == 4; })) << program.err();
  std::set<std::string> made;
  for (const auto& line : lines_of(program.out())) {
    if (line.starts_with("net:[")) made.insert(line);
  }
  EXPECT_EQ(made.size(), 2u);
  EXPECT_FALSE(made.contains(own_namespace()));
  EXPECT_EQ(network_devices(), devices);
  if (GetParam()) program.kill(GetParam());
  EXPECT_EQ(program.wait(20), GetParam() ? 128 + GetParam() : 0) << program.err();
  EXPECT_TRUE(program.wait_until_nothing_is_left(10));
  auto left = network_namespaces();
  for (const auto& name : made) EXPECT_FALSE(left.contains(name)) << name;
  EXPECT_EQ(network_devices(), devices);
}

INSTANTIATE_TEST_SUITE_P(All, RunHostsEnd, testing::Values(0, SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace trireme::test
