// What may be written for emulated hosts, and what `tc` is told.
#include "trireme/net/emulated_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "trireme/base/error.h"
#include "trireme/launch/emulate/hosts.h"

namespace trireme::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(EmulatedNetwork, ReadsRates) {
  std::map<std::string, std::uint64_t> rates{{"100mbit", 100'000'000},   {"1gbit", 1'000'000'000},
                                             {"10Mbit", 10'000'000},     {"64kbit", 64'000},
                                             {"12.5MB", 100'000'000},    {"1.5GB/s", 12'000'000'000},
                                             {"100mbit/s", 100'000'000}, {"500KB", 4'000'000},
                                             {"64000bit", 64'000},       {"unlimited", 0}};
  for (const auto& [text, rate] : rates) EXPECT_EQ(parse_emulated_network("ns:2", text, "0").bits_per_s, rate) << text;
  for (const char* text : {"", "100", "mbit", "100mbps", "100Mb", "-1mbit", "1e3mbit", "0mbit", "63kbit", "401gbit",
                           "nanmbit", "infgbit", "1 mbit", "12.5mb", "1mbit/h"}) {
    EXPECT_THAT(refusal([&] { parse_emulated_network("ns:2", text, "0"); }),
                testing::AllOf(HasSubstr("--bandwidth"), HasSubstr("100mbit"), HasSubstr("12.5MB")))
        << text;
  }
}

TEST(EmulatedNetwork, ReadsLatencies) {
  std::map<std::string, double> times{{"0.5ms", 0.5e-3}, {"200us", 200e-6}, {"1s", 1},
                                      {"0", 0},          {"0ms", 0},        {"3µs", 3e-6}};
  for (const auto& [text, time] : times) {
    EXPECT_DOUBLE_EQ(parse_emulated_network("ns:2", "unlimited", text).latency_s, time) << text;
  }
  for (const char* text : {"", "1", "ms", "-1ms", "0.5us", "11s", "1m", "nans", "1 ms", "1e-3s"}) {
    EXPECT_THAT(refusal([&] { parse_emulated_network("ns:2", "unlimited", text); }),
                testing::AllOf(HasSubstr("--latency"), HasSubstr("0.5ms")))
        << text;
  }
}

TEST(EmulatedNetwork, ReadsHostsAndWritesThemAgain) {
  EXPECT_EQ(parse_emulated_network("none", "unlimited", "0"), EmulatedNetwork{});
  for (const char* text : {"", "ns", "ns:", "ns:0", "ns:251", "ns:2x", "ns:-1", "4", "NS:2"}) {
    EXPECT_THAT(refusal([&] { parse_emulated_network(text, "unlimited", "0"); }), HasSubstr("--hosts")) << text;
  }
  for (const char* rate : {"unlimited", "64kbit", "2.5gbit", "100mbit", "123456789bit"}) {
    for (const char* latency : {"0", "1us", "99us", "0.1ms", "12.345ms", "2s"}) {
      auto network = parse_emulated_network("ns:250", rate, latency);
      EXPECT_EQ(parse_emulated_network(hosts_text(network), bandwidth_text(network), latency_text(network)), network)
          << rate << " " << latency;
    }
  }
  EXPECT_EQ(describe(parse_emulated_network("ns:4", "12.5MB", "100us")), "4 emulated hosts, 100mbit, 0.1ms");
  EXPECT_EQ(describe(parse_emulated_network("ns:1", "unlimited", "0")), "1 emulated host");
}

TEST(EmulatedNetwork, NeedsAMultipleOfHostsAndTcp) {
  auto network = parse_emulated_network("ns:3", "1gbit", "0");
  for (int workers : {3, 6, 300}) EXPECT_NO_THROW(check_emulated_network(network, workers, "auto"));
  for (int workers : {1, 2, 4, 5}) EXPECT_THROW(check_emulated_network(network, workers, "tcp"), ConfigError);
  EXPECT_THAT(refusal([&] { check_emulated_network(network, 3, "shm"); }), HasSubstr("shm"));
  EXPECT_NO_THROW(check_emulated_network({}, 5, "shm"));
}

TEST(EmulatedNetwork, ShapesBothEndsAndDelaysAtOne) {
  auto plain = parse_emulated_network("ns:2", "unlimited", "0");
  EXPECT_THAT(launch::shaping_commands("eth0", plain, true), IsEmpty());
  auto rate = "qdisc add dev eth0 root handle 1: tbf rate 100000000bit burst 6250 limit 262144";
  auto both = parse_emulated_network("ns:2", "100mbit", "1ms");
  EXPECT_THAT(launch::shaping_commands("eth0", both, false), ElementsAre(rate));
  EXPECT_THAT(launch::shaping_commands("eth0", both, true),
              ElementsAre(rate, HasSubstr("qdisc add dev eth0 parent 1:1 handle 2: netem delay 1000us limit ")));
  EXPECT_THAT(launch::shaping_commands("eth0", parse_emulated_network("ns:2", "unlimited", "1ms"), true),
              ElementsAre(HasSubstr("qdisc add dev eth0 root handle 2: netem delay 1000us limit ")));
}

// Otherwise buckets take apart what does not fit, and rates of a Gbit are not reached.
TEST(EmulatedNetwork, HostsHandOverWhatFitsABucket) {
  for (auto [rate, bytes] :
       {std::pair{"10mbit", "3028"}, {"1gbit", "31250"}, {"100gbit", "65536"}, {"unlimited", "65536"}}) {
    EXPECT_THAT(launch::host_commands(0, parse_emulated_network("ns:2", rate, "0")),
                testing::Contains(HasSubstr(std::string("gso_max_size ") + bytes + " up")))
        << rate;
  }
}

}  // namespace
}  // namespace trireme::net
