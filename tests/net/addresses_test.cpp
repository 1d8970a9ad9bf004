// Lists of hosts as Slurm writes them, and addresses as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trireme/base/error.h"
#include "trireme/net/join/slurm.h"
#include "trireme/net/socket.h"

namespace trireme::net {
namespace {

using ::testing::ElementsAre;

TEST(Slurm, HostLists) {
  EXPECT_THAT(expand_hosts("n1", "x"), ElementsAre("n1"));
  EXPECT_THAT(expand_hosts("n[08-10,7],login", "x"), ElementsAre("n08", "n09", "n10", "n7", "login"));
  EXPECT_THAT(expand_hosts("r[1-2]n[1-2]-x", "x"), ElementsAre("r1n1-x", "r1n2-x", "r2n1-x", "r2n2-x"));
  for (const char* bad : {"", "n[", "n[]", "n[3-1]", "n[a-b]", "n]", "a,,b", "n[1-9999999999]", "n[0-99999999]"}) {
    EXPECT_THROW(expand_hosts(bad, "x"), ConfigError) << bad;
  }
  EXPECT_THAT(expand_tasks("2(x3),1", "x"), ElementsAre(2, 2, 2, 1));
  for (const char* bad : {"", "0", "2(x)", "2(x0)", "2(x99999999)", "x"})
    EXPECT_THROW(expand_tasks(bad, "x"), ConfigError) << bad;
}

TEST(Addresses, AreParsedAndPrinted) {
  EXPECT_EQ(parse_host_port("[::1]:80", "x").host, "::1");
  EXPECT_EQ(parse_host_port("a.b-c:65535", "x").port, 65535);
  for (const char* bad : {"", ":", ":80", "h", "h:", "h:0", "h:65536", "::1:80", "[::1]", "a b:1", "h:80x", "h:+1"}) {
    EXPECT_THROW(parse_host_port(bad, "x"), ConfigError) << bad;
  }
  EXPECT_EQ(to_string(resolve("127.0.0.1", 80).front()), "127.0.0.1:80");
  EXPECT_EQ(to_string(resolve("::1", 80).front()), "[::1]:80");
  EXPECT_TRUE(resolve("127.8.9.1", 1).front().is_loopback());
  EXPECT_TRUE(resolve("::1", 1).front().is_loopback());
  EXPECT_FALSE(resolve("192.0.2.1", 1).front().is_loopback());
  EXPECT_TRUE(resolve("::", 1).front().is_wildcard());
  EXPECT_THROW(resolve("no.such.host.invalid", 1), ConfigError);
}

}  // namespace
}  // namespace trireme::net
