#include "trireme/train/config/straggle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/data/random.h"

namespace trireme::train {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw ConfigError(
      fmt::format("--straggle: '{}': {}; write rank=1,factor=3 or random,p=0.1,ms=50", clipped(text), why));
}

// The parts between commas; those without a value have an empty one.
std::map<std::string, std::string, std::less<>> parts_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> parts;
  for (std::string_view rest = text; !rest.empty();) {
    auto part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    auto equals = part.find('=');
    bool fresh = parts.emplace(part.substr(0, equals), equals == part.npos ? "" : part.substr(equals + 1)).second;
    if (!fresh) refuse(text, fmt::format("'{}' is there twice", part.substr(0, equals)));
  }
  return parts;
}

double take(std::map<std::string, std::string, std::less<>>& parts, std::string_view text, std::string_view name,
            double least, double most) {
  auto found = parts.find(name);
  if (found == parts.end()) refuse(text, fmt::format("'{}' is missing", name));
  double value = parse_number(found->second, fmt::format("--straggle {}", name));
  if (!(value >= least && value <= most)) refuse(text, fmt::format("{} must be from {} to {}", name, least, most));
  parts.erase(found);
  return value;
}

}  // namespace

Straggle::Straggle(std::string_view text) {
  if (text.empty()) return;
  auto parts = parts_of(text);
  if (auto random = parts.find("random"); random != parts.end() && random->second.empty()) {
    kind_ = Kind::random;
    parts.erase(random);
    probability_ = take(parts, text, "p", 0, 1);
    seconds_ = take(parts, text, "ms", 0, 60'000) / 1e3;
  } else {
    kind_ = Kind::persistent;
    rank_ = static_cast<int>(take(parts, text, "rank", 0, 1 << 20));
    factor_ = take(parts, text, "factor", 1, 1000);
  }
  if (!parts.empty()) refuse(text, fmt::format("'{}' is not understood there", clipped(parts.begin()->first)));
}

void Straggle::check_rank(std::int64_t there, std::string_view what) const {
  if (kind_ != Kind::persistent || rank_ < there) return;
  throw ConfigError(
      fmt::format("--straggle rank={}: there is none; the {} here are ranks 0 to {}", rank_, what, there - 1));
}

double Straggle::delay(int rank, std::int64_t step, double compute_s, std::uint64_t seed) const {
  switch (kind_) {
    case Kind::none:
      return 0;
    case Kind::persistent:
      return rank == rank_ ? (factor_ - 1) * compute_s : 0;
    case Kind::random:
      break;
  }
  constexpr std::uint64_t kStream = 0x7374726167676c65;  // apart from all other uses of the seed
  auto drawn = data::random_at(seed ^ kStream, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
  return static_cast<double>(drawn >> 11) * 0x1p-53 < probability_ ? seconds_ : 0;
}

}  // namespace trireme::train
