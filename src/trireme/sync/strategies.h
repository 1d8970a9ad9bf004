// The list of strategies, and how one is chosen: NAME[:key=value,…].
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/ps/client.h"
#include "trireme/sync/strategy.h"

namespace trireme::sync {

// The values a setting may have.
struct Allowed {
  enum class Kind { integer, number, word } kind = Kind::word;
  double least = 0, most = 0;           // of numbers
  std::vector<std::string_view> words;  // instead of numbers, or besides
  // "a whole number from 1 to 64, or auto"
  std::string text() const;
  bool holds(std::string_view value) const;
};
Allowed whole_number(double least, double most, std::vector<std::string_view> or_words = {});
Allowed number(double least, double most, std::vector<std::string_view> or_words = {});
Allowed one_of(std::vector<std::string_view> words);

struct Setting {
  std::string_view name;      // "H"
  std::string_view fallback;  // "8"
  std::string_view help;      // one line
  Allowed allowed;
};

// What a strategy is made for.
struct Surroundings {
  Communicator& world;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;  // of a worker, as far as can be told
  std::uint64_t seed = 1;
  // Where there are servers: this worker's end of them, the model in the order of its flat weights, and what they do
  // with gradients.
  ps::Client* client = nullptr;
  std::vector<ps::Tensor> tensors;
  ps::UpdateSpec update;
  double timeout_s = 60;
};

// The settings of a chosen strategy: every one of them has a value, and an allowed one.
class Values {
 public:
  std::string_view text(std::string_view name) const;
  bool is(std::string_view name, std::string_view word) const { return text(name) == word; }
  // Of settings whose value is no word.
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;

 private:
  friend struct Choice;
  std::vector<std::pair<std::string_view, std::string>> values_;  // in the order of the kind's settings
};

struct Kind {
  std::string_view name;
  std::string_view summary;  // one line
  std::vector<Setting> settings;
  bool needs_servers = false;
  std::unique_ptr<Strategy> (*make)(const Values& values, const Surroundings& around);
};

// All of them, in the order of the documentation.
const std::vector<Kind>& strategies();

// A strategy by name, with its settings.
struct Choice {
  const Kind* kind = nullptr;
  Values values;
  // Throws ConfigError that lists the valid names, settings or values.
  static Choice parse(std::string_view text);
  // "local-sgd:H=8", with every setting.
  std::string text() const;
  std::unique_ptr<Strategy> make(const Surroundings& around) const { return kind->make(values, around); }
};

}  // namespace trireme::sync
