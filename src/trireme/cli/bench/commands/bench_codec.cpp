// `trireme bench codec`: how fast codecs are on one core, beside a copy of the same memory in the same run, and how
// small and how right what they say is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/cli/bench/host_fields.h"
#include "trireme/cli/bench/numbers.h"
#include "trireme/cli/command.h"
#include "trireme/compress/codecs.h"

namespace trireme::cli {
namespace {

struct CodecBenchFlags {
  std::vector<std::string> codecs;
  std::string size = "64M", rounds = "7";
  bool json = false;
};

using Floats = std::vector<float>;

// All codecs, and those with a switch that is off also with it on.
std::vector<std::string> all_codecs() {
  std::vector<std::string> all;
  for (const compress::CodecKind& kind : compress::codecs()) {
    all.emplace_back(kind.name);
    for (const Setting& setting : kind.settings) {
      if (setting.fallback == "off" && setting.allowed.holds("on")) {
        all.push_back(fmt::format("{},{}=on", kind.name, setting.name));
      }
    }
  }
  return all;
}

// Nearly normal, as gradients are.
Floats gradient(std::size_t count) {
  Floats x(count);
  std::uint64_t state = 1;
  for (float& value : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int sum = 0;
    for (int shift = 16; shift < 64; shift += 12) sum += static_cast<int>(state >> shift & 0xfff) - 0x800;
    value = static_cast<float>(sum) * 0x1p-21f;
  }
  return x;
}

compress::Tensor tensor_of(std::size_t count) {
  std::size_t rows = 1;
  while (4 * rows * rows <= count && count % (2 * rows) == 0) rows *= 2;
  return {"tensor", count, rows, 0};
}

struct Buffers {
  Floats x, copy, out;
  std::vector<std::byte> message;
};

// Seconds of one call, which is made often enough to be measured.
template <typename Body>
double seconds(int calls, const Body& body) {
  const double begin = now_seconds();
  for (int i = 0; i < calls; ++i) body();
  return (now_seconds() - begin) / calls;
}

struct Result {
  std::string codec;
  std::vector<double> copy, encode, decode, feedback;  // seconds, by round
  std::size_t bytes = 0;
  double error = 0;  // ‖x − x̂‖/‖x‖
  std::string wrong;
};

// What a first message must be, whatever the codec: `left` is the difference, which is no larger than x; of those that
// are right on average, at right angles to x but for chance.
void validate(const compress::CodecKind& kind, const Buffers& buffers, const Floats& left, Result& result) {
  double size = 0, off = 0, along = 0, spread = 0;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double x = buffers.x[i], rest = x - buffers.out[i];
    differ += buffers.x[i] - buffers.out[i] != left[i];
    size += x * x;
    off += rest * rest;
    along += x * rest;
    spread += x * rest * x * rest;
  }
  result.error = size > 0 ? std::sqrt(off / size) : 0;
  if (differ > 0) result.wrong = fmt::format("{} elements of what is left are wrong", differ);
  if (kind.unbiased && std::abs(along) > 6 * std::sqrt(spread) + 1e-6 * size)
    result.wrong = "messages are not right on average";
  if (!kind.unbiased && !(result.error <= 1.0001)) result.wrong = "what is left is larger than what was encoded";
  if (result.bytes > 4 * left.size() + compress::Codec::kHeader)
    result.wrong = "a message is longer than what it encodes";
}

// A codec as written, with ef on or off unless that is written too.
compress::Choice parse(const std::string& text, std::string_view feedback) {
  auto choice = compress::Choice::parse(text);
  const auto error = choice.kind->error;
  const bool may = error == compress::CodecKind::Error::fed_back || error == compress::CodecKind::Error::dropped;
  if (!may || text.find("ef=") != std::string::npos) return choice;
  return compress::Choice::parse(fmt::format("{},ef={}", text, feedback));
}

Result measure(const std::string& text, Buffers& buffers, int rounds) {
  const auto choice = parse(text, "off"), fed_back = parse(text, "on");
  const compress::CodecKind& kind = *choice.kind;
  const compress::Tensor tensor = tensor_of(buffers.x.size());
  const compress::Context context;
  auto codec = choice.make(tensor, context), feedback = fed_back.make(tensor, context);
  buffers.message.resize(codec->most_bytes(tensor.count));

  Result result{.codec = text};
  {
    Floats left(tensor.count);
    result.bytes = codec->encode(0, buffers.x, buffers.message.data(), left.data());
    codec->decode({buffers.message.data(), result.bytes}, buffers.out);
    validate(kind, buffers, left, result);
  }
  codec = choice.make(tensor, context);
  std::size_t bytes = 0;
  const auto copy = [&] {
    std::memcpy(buffers.copy.data(), buffers.x.data(), buffers.x.size() * sizeof(float));
    asm volatile("" ::: "memory");
  };
  const auto encode = [&] { bytes = codec->encode(0, buffers.x, buffers.message.data(), nullptr); };
  const auto decode = [&] { codec->decode({buffers.message.data(), bytes}, buffers.out); };
  const auto feed_back = [&] { bytes = feedback->encode(0, buffers.x, buffers.message.data(), nullptr); };
  const int calls = static_cast<int>(std::clamp(2e-3 / seconds(1, encode), 1.0, 1000.0));
  for (auto* warm : {&buffers.copy, &buffers.out}) std::ranges::fill(*warm, 0.0f);
  const bool feeds_back = fed_back.text() != choice.text();
  for (int round = 0; round < rounds; ++round) {
    result.copy.push_back(seconds(calls, copy));
    result.encode.push_back(seconds(calls, encode));
    result.decode.push_back(seconds(calls, decode));
    if (feeds_back) result.feedback.push_back(seconds(calls, feed_back));
  }
  return result;
}

// Median over rounds of the copy's time over another's, both of the same round.
double share(const std::vector<double>& copy, const std::vector<double>& other) {
  std::vector<double> each;
  for (std::size_t i = 0; i < other.size(); ++i) each.push_back(copy[i] / other[i]);
  return other.empty() ? 0 : bench::median(std::move(each));
}

void print(const Result& result, std::size_t count, bool json) {
  const double bytes = 4.0 * static_cast<double>(count);
  const auto rate = [&](const std::vector<double>& times) {
    return times.empty() ? 0 : bytes / bench::median(times) * 1e-9;
  };
  const double bits = 8.0 * static_cast<double>(result.bytes) / static_cast<double>(count);
  const double ratio = bytes / static_cast<double>(std::max<std::size_t>(1, result.bytes));
  const double encode = share(result.copy, result.encode), decode = share(result.copy, result.decode);
  if (json) {
    nlohmann::json row{{"bench", "codec"},
                       {"codec", result.codec},
                       {"bytes", 4 * count},
                       {"memcpy_gbs", rate(result.copy)},
                       {"encode_gbs", rate(result.encode)},
                       {"encode_of_memcpy", encode},
                       {"decode_gbs", rate(result.decode)},
                       {"decode_of_memcpy", decode},
                       {"encode_ef_gbs", rate(result.feedback)},
                       {"encode_ef_of_memcpy", share(result.copy, result.feedback)},
                       {"message_bytes", result.bytes},
                       {"bits_per_element", bits},
                       {"ratio", ratio},
                       {"relative_error", result.error},
                       {"right", result.wrong.empty()}};
    bench::add_host(row);
    fmt::print("{}\n", row.dump());
  } else {
    const auto fed =
        result.feedback.empty() ? fmt::format("{:>8}", "-") : fmt::format("{:8.2f}", rate(result.feedback));
    fmt::print("{:<22} {:8.2f} {:8.2f} {:6.0f}% {:8.2f} {:6.0f}% {} {:8.3f} {:8.1f} {:9.2g}  {}\n", result.codec,
               rate(result.copy), rate(result.encode), 100 * encode, rate(result.decode), 100 * decode, fed, bits,
               ratio, result.error, result.wrong.empty() ? "yes" : "NO");
  }
  std::fflush(stdout);
}

void run(const CodecBenchFlags& flags) {
  const std::uint64_t bytes = parse_size(flags.size, "--size");
  if (bytes < sizeof(float) || bytes > 4ULL << 30) throw ConfigError("--size: from 4 bytes to 4G");
  const int rounds = static_cast<int>(parse_integer(flags.rounds, "--rounds", 1, 1000));
  const auto chosen = flags.codecs.empty() ? all_codecs() : flags.codecs;
  for (const auto& text : chosen) (void)compress::Choice::parse(text);
  const std::size_t count = bytes / sizeof(float);
  Buffers buffers{gradient(count), Floats(count), Floats(count), {}};
  if (!flags.json) {
    fmt::print(
        "codecs on {} of f32, one core; GB/s of input, median of {} rounds, each beside a memcpy of the same input\n"
        "{:<22} {:>8} {:>8} {:>7} {:>8} {:>7} {:>8} {:>8} {:>8} {:>9}  {}\n",
        format_size(4 * count), rounds, "codec", "memcpy", "encode", "of it", "decode", "of it", "with ef", "bits",
        "ratio", "error", "right");
  }
  std::string wrong;
  for (const auto& text : chosen) {
    const Result result = measure(text, buffers, rounds);
    print(result, count, flags.json);
    if (!result.wrong.empty()) wrong = fmt::format("{}: {}", text, result.wrong);
  }
  if (!wrong.empty()) throw DataError(wrong);
}

}  // namespace

void add_bench_codec(CLI::App& app) {
  auto* command = app.add_subcommand("bench-codec", "Measure codecs: also `bench codec`");
  auto flags = std::make_shared<CodecBenchFlags>();
  command->group("");  // its name for people is `bench codec`
  command->add_option("--codec", flags->codecs, "As in --compress, several times (default: all)");
  command->add_option("--size", flags->size, "Bytes of the tensor")->capture_default_str();
  command->add_option("--rounds", flags->rounds, "How often each has its turn")->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback([flags] { run(*flags); });
}

}  // namespace trireme::cli
