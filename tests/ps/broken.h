// What the seeded test and the fuzzer do to the wire of the parameter server.
#pragma once
#include <cstdlib>

#include "trireme/base/error.h"
#include "trireme/ps/client/worker_codes.h"
#include "trireme/ps/server/server_codes.h"
#include "trireme/ps/wire/messages.h"

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

// Both ends of a compressed job, for each codec: a shard that is a matrix and a bias.
class Ends {
 public:
  explicit Ends(std::string_view codec) {
    view_.layout = Layout({{"weight", 2048, 32}, {"bias", 5, 5}}, 1);
    view_.chains = {{0}};
    view_.workers = {{0, true}};
    view_.compression.codec = codec;
    const compress::Rules rules(codec, "");
    worker_ = std::make_unique<WorkerCodes>(view_.layout, rules, view_.compression, 0, 1);
    server_.set_view(view_, 0);
    for (std::size_t i = 0; i < gradient_.size(); ++i) gradient_[i] = static_cast<float>(i % 37) - 18;
  }
  static std::vector<std::unique_ptr<Ends>>& all() {
    static std::vector<std::unique_ptr<Ends>> ends = [] {
      std::vector<std::unique_ptr<Ends>> list;
      for (const auto& kind : compress::codecs()) {
        if (kind.name != "none") list.push_back(std::make_unique<Ends>(kind.name));
      }
      return list;
    }();
    return ends;
  }

  // A push, and an answer to a pull, as they should be.
  std::string push() {
    auto message = worker_->encode(gradient_);
    return text(message.of(0));
  }
  std::string difference() {
    Shadows shadows;
    Shard shard(0, gradient_.size(), 0);
    std::ranges::fill(shard.weights(), 0.5f);
    auto coder = [&] { return Coder(slices(), Coder::Of::differences, false, {}); };
    auto has = shadows.answer(0, 0, shard, 0, coder).number;
    shard.take({.worker = 0, .lr = 1, .values = gradient_, .keep = {}});
    shard.apply(0, make_update({.name = "sgd"}));
    return text(shadows.answer(0, 0, shard, has, coder).bytes);
  }

  void decode(std::string_view bytes) {
    const auto message = std::as_bytes(std::span(bytes));
    bear([&] { server_.decode(0, message, out_); });
    bear([&] {
      worker_->take(0, 0, 7, std::as_bytes(std::span(out_)));
      worker_->take(0, 7, 8, message);
    });
  }

 private:
  std::vector<Slice> slices() const { return cut(view_.layout, compress::Rules(view_.compression.codec, ""))[0]; }
  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  View view_;
  std::unique_ptr<WorkerCodes> worker_;
  ServerCodes server_;
  std::vector<float> gradient_ = std::vector<float>(2053), out_ = std::vector<float>(2053);
};

inline constexpr std::size_t kSamples = 6;
inline std::string sample_body(std::size_t which) {
  switch (which) {
    case 0:
      return pack(PushBody{
          3, 7, 9, 0.1, true, false, {{1, 2, 3, true, {{0, 4}, {9, 2}}, 64, 0}, {2, 0, 0, false, {}, 0, 99}}, true});
    case 1:
      return pack(PullBody{1, 2, 3, PullBody::What::direct, {{0, 64, 0}, {5, 128, 1}}});
    case 2:
      return pack(ValuesBody{0.5, {{1, 2, 3, 4, 5, 6, 7}, {2, 3, 4, 5, 0, 1, 2}}});
    case 3:
      return pack(RecordBody{4, 17, true, {.worker = 2, .segments = {{0, 3}}, .sparse = true}, {5, 6}});
    case 4: {
      Packer to;
      View view;
      view.compression = {"int8", "fc=none"};
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
