// The list of strategies, and how one is chosen: NAME[:key=value,…].
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/sync/strategy.h"

namespace trireme::sync {

// A setting of a strategy. Its default's text says what kind of value it takes.
struct Setting {
  std::string_view name;      // "H"
  std::string_view fallback;  // "8"
  std::string_view help;      // one line
};

// What a strategy is made for.
struct Surroundings {
  Communicator& world;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;  // of a worker, as far as can be told
  std::uint64_t seed = 1;
};

// The settings of a chosen strategy, checked against its list: every one of them has a value.
class Values {
 public:
  std::string_view text(std::string_view name) const;
  // ConfigError names the strategy, the setting and what is allowed.
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  double number(std::string_view name, double least, double most) const;
  std::string one_of(std::string_view name, std::span<const std::string_view> allowed) const;

 private:
  friend struct Choice;
  std::string strategy_;
  std::vector<std::pair<std::string, std::string>> values_;
};

struct Kind {
  std::string_view name;
  std::string_view summary;  // one line
  std::vector<Setting> settings;
  std::unique_ptr<Strategy> (*make)(const Values& values, const Surroundings& around);
};

// All of them, in the order of the documentation.
const std::vector<Kind>& strategies();

// A strategy by name, with its settings. Throws ConfigError that lists the valid names, settings or values.
struct Choice {
  const Kind* kind = nullptr;
  Values values;
  static Choice parse(std::string_view text);
  // "local-sgd:H=8", with every setting.
  std::string text() const;
};

}  // namespace trireme::sync
