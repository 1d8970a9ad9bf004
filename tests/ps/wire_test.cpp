// Frames and bodies of the parameter server under broken input, from a seed; tests/fuzz goes on for longer.
#include "trireme/ps/wire/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/ps/broken.h"
#include "trireme/ps/coordinator/placement.h"

namespace trireme::ps {
namespace {

std::string encode(Kind kind, std::string_view body, std::string_view payload) {
  Header header;
  header.kind = kind;
  header.payload = payload.size();
  seal(header, body);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + std::string(body) + std::string(payload);
}

TEST(Wire, FramesComeOutAsTheyWentInHoweverTheyAreCut) {
  std::string stream = encode(Kind::push, "abc", "12345678") + encode(Kind::beat, "", "") + encode(Kind::view, "x", "");
  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    std::string payload(8, 0);
    Parser parser([&](const Header&, std::string_view) -> Sink {
      auto bytes = std::as_writable_bytes(std::span(payload));
      return {{bytes.first(3), bytes.subspan(3, 0), bytes.subspan(3)}, nullptr};
    });
    std::vector<std::string> bodies;
    for (std::string_view rest = stream; !rest.empty();) {
      auto space = parser.space();
      std::size_t bytes = std::min({space.size(), rest.size(), piece});
      std::memcpy(space.data(), rest.data(), bytes);
      rest.remove_prefix(bytes);
      if (parser.filled(bytes)) bodies.push_back(parser.take().body);
    }
    EXPECT_EQ(bodies, (std::vector<std::string>{"abc", "", "x"}));
    EXPECT_EQ(payload, "12345678");
  }
}

TEST(Wire, BrokenStreamsEndInAnErrorAndTakeNoMemory) {
  std::mt19937_64 random(1);
  std::string good = sample_body(0);
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes = encode(static_cast<Kind>(1 + random() % kLastKind), good.substr(0, random() % good.size()), "");
    for (std::uint64_t flips = random() % 4; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    }
    if (random() % 2) reseal(bytes);
    feed(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), 1 + random() % 64);
  }
}

TEST(Wire, BodiesOfEveryKindBearAnything) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 50'000; ++i) {
    std::string body = sample_body(random() % kSamples);
    body.resize(random() % 8 ? body.size() : random() % (body.size() + 1));
    for (std::uint64_t flips = random() % 5; flips > 0 && !body.empty(); --flips) {
      body[random() % body.size()] = static_cast<char>(random());
    }
    unpack_anything(body);
  }
}

// Pushes and differences of every codec, broken in their lengths and everywhere.
TEST(Wire, EncodedShardsBearAnything) {
  std::mt19937_64 random(4);
  for (auto& ends : Ends::all()) {
    const std::string good[] = {ends->push(), ends->difference()};
    for (int i = 0; i < 150; ++i) {
      std::string bytes = good[random() % 2];
      if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 9));
      const std::size_t within = random() % 2 ? std::min<std::size_t>(bytes.size(), 32) : bytes.size();
      for (std::uint64_t flips = random() % 5; flips > 0 && within > 0; --flips) {
        bytes[random() % within] = static_cast<char>(random());
      }
      ends->decode(bytes);
    }
  }
}

TEST(Wire, LayoutsAreCutEvenly) {
  Layout layout({{"conv", 150, 1}, {"bias", 7, 1}, {"table", 40000, 400}}, 6);
  ASSERT_EQ(layout.shards(), 6u);
  std::uint64_t end = 0, least = UINT64_MAX, most = 0;
  for (std::size_t i = 0; i < layout.shards(); ++i) {
    EXPECT_EQ(layout.shard(i).offset, end);
    end += layout.shard(i).count;
    least = std::min(least, layout.shard(i).count);
    most = std::max(most, layout.shard(i).count);
  }
  EXPECT_EQ(end, layout.count());
  EXPECT_LE(most - least, 32u);
  EXPECT_EQ(layout.describe(0), "conv[0:150], bias[0:7], table[0:6531]");
  EXPECT_EQ(Layout({{"tiny", 3, 1}}, 8).shards(), 1u);
}

// Whatever dies, comes or leaves, in any order: chains have no server twice and lose no shard as long as one copy that
// is whole lives; left alone, all copies are there again and heads are spread.
TEST(Wire, PlacementSettlesAfterAnything) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t replicas = 1 + random() % 3;
    std::vector<Placement::Candidate> servers;
    ServerId next = 0;
    for (; next < 3; ++next) servers.push_back({next, false, {}});
    Placement placement;
    placement.begin(12, servers, replicas);
    auto sync = [&](bool all) {
      for (std::uint32_t shard = 0; shard < 12; ++shard) {
        for (ServerId id : placement.chains()[shard]) {
          if (all || random() % 3 == 0) placement.synced(shard, id);
        }
      }
    };
    auto rest = [&] {
      for (int i = 0; i < 200; ++i) {
        sync(true);
        if (!placement.settle(servers, replicas)) return;
      }
      FAIL() << "it never settles";
    };
    rest();
    for (int event = 0; event < 10; ++event) {
      if (random() % 2 == 0 || servers.size() < 3) {
        servers.push_back({next++, false, {}});
      } else if (random() % 2 == 0 && replicas > 1) {
        servers.erase(servers.begin() + static_cast<long>(random() % servers.size()));
      } else {
        servers[random() % servers.size()].leaving = true;
      }
      placement.settle(servers, replicas);
      sync(false);
      placement.settle(servers, replicas);
      rest();
      std::erase_if(servers, [&](auto& server) { return server.leaving && !placement.carries(server.id); });
      std::map<ServerId, int> heads;
      ASSERT_TRUE(placement.lost().empty());
      for (auto chain : placement.chains()) {
        EXPECT_EQ(chain.size(), std::min(replicas, servers.size()));
        ++heads[chain.front()];
        std::ranges::sort(chain);
        EXPECT_EQ(std::ranges::adjacent_find(chain), chain.end());
      }
      if (replicas > 1) {
        for (auto& server : servers) EXPECT_GE(heads[server.id], 12 / static_cast<int>(servers.size()) - 3);
      }
    }
  }
}

}  // namespace
}  // namespace trireme::ps
