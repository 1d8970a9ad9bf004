// What the seeded test and the fuzzer do to the wire of the parameter server.
#pragma once
#include <cstdlib>

#include "trireme/base/error.h"
#include "trireme/ps/messages.h"

namespace trireme::ps {

// A stream in pieces; nothing may be allocated beyond what a header may ask for.
inline void feed(const std::uint8_t* data, std::size_t size, std::size_t piece) {
  std::vector<std::byte> payload(4096);
  Parser parser([&](const Header& header, std::string_view) -> Sink {
    if (header.payload > payload.size()) throw ProtocolError("too long");
    return {{std::span(payload).first(header.payload)}, nullptr};
  });
  try {
    while (size > 0) {
      auto space = parser.space();
      if (space.empty() || space.size() > 64 << 20) std::abort();
      std::size_t bytes = std::min({space.size(), size, piece});
      std::memcpy(space.data(), data, bytes);
      data += bytes;
      size -= bytes;
      if (parser.filled(bytes)) parser.take();
    }
  } catch (const ProtocolError&) {
  }
}

// Past the checksums, so that what is behind them is reached.
inline void reseal(std::string& bytes) {
  Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  seal(header, std::string_view(bytes).substr(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
}

template <typename Call>
void bear(Call call) {
  try {
    call();
  } catch (const ProtocolError&) {
  }
}

inline void unpack_anything(std::string_view body) {
  bear([&] { unpack_push(body); });
  bear([&] { unpack_pull(body); });
  bear([&] { unpack_values(body); });
  bear([&] { unpack_record(body); });
  bear([&] {
    Unpacker from(body);
    unpack_view(from);
  });
  bear([&] {
    Unpacker from(body);
    unpack_job(from);
  });
  bear([&] {
    Unpacker from(body);
    auto floats = Shard::floats_of(from);
    if (floats > 100'000) return;
    std::vector<float> values(floats);
    Shard::unpack(from, values);
  });
}

inline constexpr std::size_t kSamples = 6;
inline std::string sample_body(std::size_t which) {
  switch (which) {
    case 0:
      return pack(
          PushBody{3, 7, 9, 0.1, true, false, {{1, 2, 3, true, {{0, 4}, {9, 2}}, 64}, {2, 0, 0, false, {}, 0}}});
    case 1:
      return pack(PullBody{1, 2, 3, PullBody::What::direct, {{0, 64}, {5, 128}}});
    case 2:
      return pack(ValuesBody{0.5, {{1, 2, 3, 4}, {2, 3, 4, 5}}});
    case 3:
      return pack(RecordBody{4, 17, true, {.worker = 2, .segments = {{0, 3}}, .sparse = true}, {5, 6}});
    case 4: {
      Packer to;
      View view;
      view.layout = Layout({{"conv1.weight", 500, 20}, {"fc", 100, 1}}, 3);
      view.servers = {{0, "a", "host", "p", "@x", "127.0.0.1:1"}, {1, "b", "host", "p", "@y", ""}};
      view.workers = {{0, true}, {1, false}};
      view.chains = {{0, 1}, {1}, {0}};
      pack(to, view);
      return to.take();
    }
    default: {
      Shard shard(1, 20, 1);
      shard.take({.worker = 1, .segments = {{2, 3}}, .sparse = true, .values = shard.weights().first(3)});
      Packer to;
      std::vector<std::span<const float>> floats;
      shard.pack(to, floats);
      return to.take();
    }
  }
}

}  // namespace trireme::ps
