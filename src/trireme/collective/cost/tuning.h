// What `auto` decides from: the costs of this machine and transport as `trireme tune` measured them, or defaults.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/collective/cost/link_model.h"

namespace trireme {

struct Tuning {
  LinkModel model;
  // Ranks that share memory.
  std::size_t inline_limit = kInlineLimit;  // bytes: up to here a call goes through the posts
  std::size_t stage_chunk = 256 << 10;      // bytes: a segment of a vector in private memory
  std::size_t streaming_from = SIZE_MAX;    // bytes per rank: from here on direct results are stored past the cache
  // Messages: pieces of a long vector when an algorithm moves it whole, so that rounds overlap; 0: never cut.
  std::size_t segment = 256 << 10;
  int spins = 4000;  // looks at a counter before a rank lets others run
  std::string source = "defaults";

  bool operator==(const Tuning&) const = default;
};

Tuning default_tuning(std::string_view transport);

nlohmann::json to_json(const Tuning& tuning);
// Throws DataError naming the key.
Tuning tuning_from_json(const nlohmann::json& json);

// Identifies hosts that cost the same: processor, cores, caches, memory.
std::string machine_fingerprint();
// Where `tune` keeps what it measured for this machine: under TRIREME_CACHE, XDG_CACHE_HOME or ~/.cache.
std::string tuning_path(std::string_view transport);
// None if this machine was not tuned, or by another version. A file that cannot be read as a tuning throws DataError
// naming it.
std::optional<Tuning> load_tuning(std::string_view transport);
// Atomic: a reader sees the old file or the new one.
void save_tuning(const Tuning& tuning, std::string_view transport);

}  // namespace trireme
