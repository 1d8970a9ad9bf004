// Data made up on the spot, of any shape, with something to learn: images and rows are a prototype of their class with
// noise; text follows a random table of successors, with every eighth symbol at random. Sample i is a function of
// (seed, part, i), so nothing is stored but the prototypes and a pool of noise. Values to predict are drawn for each
// prototype.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/base/text/nearest.h"
#include "trireme/base/text/size.h"
#include "trireme/base/text/text.h"
#include "trireme/data/formats/formats.h"
#include "trireme/data/formats/image_set.h"
#include "trireme/data/random.h"

namespace trireme::data {
namespace {

constexpr std::size_t kPool = 1 << 16;
constexpr std::int64_t kMost = std::int64_t{1} << 31;

struct Settings {
  std::vector<std::int64_t> shape{3, 32, 32};
  bool text = false;
  std::int64_t classes = 10, samples = 50000, test = -1, seed = 1, length = 64, vocabulary = 256, values = 0;
  bool zero_one = false;  // values
  double noise = 1;
};

class Prototypes final : public Dataset {
 public:
  Prototypes(const Settings& settings, std::uint64_t part, std::int64_t size)
      : seed_(static_cast<std::uint64_t>(settings.seed)), part_(part), size_(size), pool_(kPool) {
    shape_ = {settings.shape, settings.values > 0 ? 0 : settings.classes, false, settings.values};
    classes_ = static_cast<std::uint64_t>(settings.classes);
    each_ = 1;
    for (const auto extent : settings.shape) each_ *= static_cast<std::size_t>(extent);
    prototypes_.resize(each_ * static_cast<std::size_t>(settings.classes));
    for (std::size_t i = 0; i < prototypes_.size(); ++i) {
      prototypes_[i] = normal(random_at(seed_, i / each_, 1000 + cell(i % each_)));
    }
    for (std::size_t i = 0; i < classes_ * static_cast<std::size_t>(settings.values); ++i) {
      const float value = normal(random_at(seed_, 4, i));
      values_.push_back(!settings.zero_one ? value : value > 0 ? 1.0f : 0.0f);
    }
    const auto noise = static_cast<float>(settings.noise);
    for (std::size_t i = 0; i < kPool; ++i) pool_[i] = noise * normal(random_at(seed_, 1, i));
  }

  std::int64_t size() const override { return size_; }
  const Shape& shape() const override { return shape_; }

  Batch get(std::span<const std::int64_t> indices) const override {
    Batch batch = empty_batch(shape_, indices.size());
    auto* input = batch.input.data_ptr<float>();
    auto* target = shape_.values > 0 ? nullptr : batch.target.data_ptr<std::int64_t>();
    auto* values = shape_.values > 0 ? batch.target.data_ptr<float>() : nullptr;
    for (const auto index : indices) {
      TRIREME_CHECK(index >= 0 && index < size_);
      const auto random = random_at(seed_, part_, static_cast<std::uint64_t>(index));
      const auto label = below(random, classes_);
      fill(prototypes_.data() + label * each_, input, random & (kPool - 1));
      if (target) *target++ = static_cast<std::int64_t>(label);
      if (values) {
        const auto from = values_.begin() + static_cast<std::ptrdiff_t>(label) * shape_.values;
        values = std::copy_n(from, shape_.values, values);
      }
      input += each_;
    }
    return batch;
  }

 private:
  // Images get patches of one value, an 8th of the side, so that convolutions find something.
  std::size_t cell(std::size_t place) const {
    if (shape_.input.size() != 3) return place;
    const auto height = static_cast<std::size_t>(shape_.input[1]), width = static_cast<std::size_t>(shape_.input[2]);
    const auto channel = place / (height * width), y = place / width % height, x = place % width;
    return channel * 64 + y * 8 / height * 8 + x * 8 / width;
  }

  void fill(const float* prototype, float* to, std::size_t from) const {
    for (std::size_t at = 0; at < each_;) {
      const auto run = std::min(each_ - at, kPool - from);
      const float* noise = pool_.data() + from;
      for (std::size_t i = 0; i < run; ++i) to[at + i] = prototype[at + i] + noise[i];
      at += run;
      from = 0;
    }
  }

  std::uint64_t seed_, part_;
  std::int64_t size_;
  Shape shape_;
  std::size_t each_;
  std::uint64_t classes_;  // of prototypes
  std::vector<float> prototypes_, values_, pool_;
};

class Successors final : public Dataset {
 public:
  Successors(const Settings& settings, std::uint64_t part, std::int64_t size)
      : seed_(static_cast<std::uint64_t>(settings.seed)), part_(part), size_(size) {
    shape_ = {{settings.length}, settings.vocabulary, true};
    next_ = permutation(settings.vocabulary, seed_, 1);
  }

  std::int64_t size() const override { return size_; }
  const Shape& shape() const override { return shape_; }

  Batch get(std::span<const std::int64_t> indices) const override {
    Batch batch = empty_batch(shape_, indices.size());
    auto* input = batch.input.data_ptr<std::int64_t>();
    auto* target = batch.target.data_ptr<std::int64_t>();
    const auto vocabulary = static_cast<std::uint64_t>(shape_.classes);
    for (const auto index : indices) {
      TRIREME_CHECK(index >= 0 && index < size_);
      const auto sequence = random_at(seed_, part_, static_cast<std::uint64_t>(index));
      std::uint64_t symbol = below(sequence, vocabulary);
      for (std::int64_t place = 0; place < shape_.input[0]; ++place) {
        *input++ = static_cast<std::int64_t>(symbol);
        const auto random = random_at(sequence, static_cast<std::uint64_t>(place));
        symbol = (random & 7) == 0 ? below(random, vocabulary) : static_cast<std::uint64_t>(next_[symbol]);
        *target++ = static_cast<std::int64_t>(symbol);
      }
    }
    return batch;
  }

 private:
  std::uint64_t seed_, part_;
  std::int64_t size_;
  Shape shape_;
  std::vector<std::int64_t> next_;
};

std::vector<std::int64_t> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  std::int64_t product = 1;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('x', at), text.size());
    shape.push_back(parse_integer(text.substr(at, end - at), "shape of synthetic data", 1, 1 << 24));
    product *= shape.back();
    if (product > (1 << 28)) throw ConfigError(fmt::format("synthetic:{}: a sample has over 2^28 values", text));
    at = end + 1;
  }
  return shape;
}

void set(Settings& settings, std::string_view key, std::string_view value, std::string_view spec) {
  const auto integer = [&](std::int64_t lowest, std::int64_t highest) {
    return parse_integer(value, fmt::format("{} of synthetic data", key), lowest, highest);
  };
  if (key == "samples") {
    settings.samples = integer(1, kMost);
  } else if (key == "test") {
    settings.test = integer(1, kMost);
  } else if (key == "seed") {
    settings.seed = integer(0, INT64_MAX);
  } else if (key == "classes" && !settings.text) {
    settings.classes = integer(1, 1 << 20);
  } else if (key == "values" && !settings.text) {
    settings.values = integer(1, 4096);
  } else if (key == "noise" && !settings.text) {
    settings.noise = parse_number(value, "noise of synthetic data");
  } else if (key == "length" && settings.text) {
    settings.length = integer(1, 1 << 20);
  } else if (key == "vocabulary" && settings.text) {
    settings.vocabulary = integer(2, 1 << 20);
  } else {
    std::vector<std::string_view> names{"samples", "test", "seed"};
    if (settings.text) {
      names.insert(names.end(), {"length", "vocabulary"});
    } else {
      names.insert(names.end(), {"classes", "values", "noise"});
    }
    throw ConfigError(fmt::format("{}: no setting '{}'; {}there are {}", clipped(spec), clipped(key),
                                  did_you_mean(key, names), fmt::join(names, ", ")));
  }
}

Settings parse(std::string_view spec, const OpenOptions& options) {
  Settings settings;
  settings.length = options.length;
  std::string_view rest = spec.substr(std::string_view("synthetic").size());
  if (!rest.empty()) rest.remove_prefix(1);
  for (bool first = true; !rest.empty(); first = false) {
    const auto word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto equals = word.find('=');
    if (equals != std::string_view::npos) {
      set(settings, word.substr(0, equals), word.substr(equals + 1), spec);
    } else if (!first) {
      throw ConfigError(fmt::format("{}: '{}' is not a setting like samples=1000", clipped(spec), clipped(word)));
    } else if (word == "text") {
      settings.text = true;
    } else {
      settings.shape = parse_shape(word);
    }
  }
  if (options.wants_values() && !settings.text && settings.values == 0) settings.values = 1;
  settings.zero_one = options.targets == Targets::zero_one;
  if (settings.test < 0) settings.test = std::max<std::int64_t>(1, settings.samples / 5);
  return settings;
}

}  // namespace

bool is_synthetic(std::string_view spec) { return spec == "synthetic" || spec.starts_with("synthetic:"); }

Splits open_synthetic(std::string_view spec, const OpenOptions& options) {
  if (options.augment) throw ConfigError(fmt::format("{}: synthetic data is not augmented", spec));
  const auto settings = parse(spec, options);
  Splits splits{.name = std::string(spec)};
  if (settings.text) {
    splits.train = std::make_shared<Successors>(settings, 2, settings.samples);
    splits.test = std::make_shared<Successors>(settings, 3, settings.test);
  } else {
    splits.train = std::make_shared<Prototypes>(settings, 2, settings.samples);
    splits.test = std::make_shared<Prototypes>(settings, 3, settings.test);
  }
  return splits;
}

}  // namespace trireme::data
