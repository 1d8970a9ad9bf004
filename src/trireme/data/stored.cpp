#include "trireme/data/stored.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "trireme/base/error.h"
#include "trireme/data/formats/image_set.h"
#include "trireme/data/input.h"
#include "trireme/data/random.h"

namespace trireme::data {
namespace {

class RowSet final : public Dataset {
 public:
  RowSet(Samples<float> samples, std::int64_t classes)
      : samples_(std::move(samples)), shape_{samples_.shape, classes, false, samples_.outputs} {}

  std::int64_t size() const override { return samples_.size(); }
  const Shape& shape() const override { return shape_; }

  Batch get(std::span<const std::int64_t> indices) const override {
    Batch batch = empty_batch(shape_, indices.size());
    auto* input = batch.input.data_ptr<float>();
    const auto each = static_cast<std::size_t>(samples_.each());
    for (const auto index : indices) {
      TRIREME_CHECK(index >= 0 && index < size());
      std::memcpy(input, samples_.values.data() + static_cast<std::size_t>(index) * each, each * sizeof(float));
      input += each;
    }
    put_targets(samples_, indices, batch.target);
    return batch;
  }

 private:
  const Samples<float> samples_;
  const Shape shape_;
};

// Counted in integers, so that the result is the same on every machine.
Normalization measure(const Samples<std::uint8_t>& samples) {
  const auto channels = static_cast<std::size_t>(samples.shape.size() == 3 ? samples.shape[0] : 1);
  const auto plane = static_cast<std::size_t>(samples.each()) / channels;
  std::vector<std::array<std::uint64_t, 256>> counts(channels);
  for (std::size_t at = 0, channel = 0; at < samples.values.size(); at += plane, channel = (channel + 1) % channels) {
    auto& count = counts[channel];
    for (std::size_t i = 0; i < plane; ++i) ++count[samples.values[at + i]];
  }
  Normalization result;
  for (const auto& count : counts) {
    double pixels = 0, sum = 0, squares = 0;
    for (std::size_t value = 0; value < 256; ++value) {
      const auto times = static_cast<double>(count[value]);
      const double level = static_cast<double>(value) / 255.0;
      pixels += times;
      sum += times * level;
      squares += times * level * level;
    }
    const double mean = sum / std::max(pixels, 1.0);
    const double variance = squares / std::max(pixels, 1.0) - mean * mean;
    result.mean.push_back(static_cast<float>(mean));
    result.deviation.push_back(variance > 1e-12 ? static_cast<float>(std::sqrt(variance)) : 1.0f);
  }
  return result;
}

}  // namespace

std::int64_t count_classes(const std::vector<std::int64_t>& labels) {
  return labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + 1;
}

bool too_many_classes(std::size_t different, std::size_t samples) {
  constexpr std::size_t kAlwaysTaken = 10;  // small tables, as in examples
  return different > kAlwaysTaken && 2 * different > samples;
}

template <typename T>
void put_targets(const Samples<T>& samples, std::span<const std::int64_t> indices, torch::Tensor& target) {
  if (samples.outputs == 0) {
    auto* to = target.data_ptr<std::int64_t>();
    for (const auto index : indices) *to++ = samples.labels[static_cast<std::size_t>(index)];
    return;
  }
  auto* to = target.data_ptr<float>();
  for (const auto index : indices)
    to = std::copy_n(samples.targets.begin() + index * samples.outputs, samples.outputs, to);
}

template void put_targets(const Samples<std::uint8_t>&, std::span<const std::int64_t>, torch::Tensor&);
template void put_targets(const Samples<float>&, std::span<const std::int64_t>, torch::Tensor&);

void check_values(const std::filesystem::path& where, std::span<const float> values, std::int64_t each,
                  Targets targets) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto sample = i / static_cast<std::size_t>(each);
    if (!std::isfinite(values[i])) bad_file(where, fmt::format("the target of sample {} is not finite", sample));
    if (targets == Targets::zero_one && values[i] != 0 && values[i] != 1) {
      bad_file(where, fmt::format("the target {:g} of sample {} is neither 0 nor 1, as --loss bce wants; predict other "
                                  "numbers with --loss mse",
                                  values[i], sample));
    }
  }
}

template <typename T>
Samples<T> split_off(Samples<T>& samples, double fraction, std::uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) throw ConfigError("the test fraction must lie between 0 and 1");
  const auto size = samples.size();
  auto count = static_cast<std::int64_t>(std::llround(static_cast<double>(size) * fraction));
  count = size < 2 ? 0 : std::clamp<std::int64_t>(count, 1, size - 1);
  const auto order = permutation(size, seed, 0x5711);
  std::vector<bool> chosen(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < count; ++i) chosen[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;

  const auto each = static_cast<std::size_t>(samples.each());
  Samples<T> taken{samples.shape, {}, {}, {}, samples.outputs};
  const auto outputs = static_cast<std::size_t>(samples.outputs);
  taken.values.reserve(static_cast<std::size_t>(count) * each);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto from = samples.values.begin() + static_cast<std::ptrdiff_t>(i * each);
    const auto to = from + static_cast<std::ptrdiff_t>(each);
    if (chosen[i]) {
      taken.values.insert(taken.values.end(), from, to);
      if (outputs == 0) taken.labels.push_back(samples.labels[i]);
      for (std::size_t k = 0; k < outputs; ++k) taken.targets.push_back(samples.targets[i * outputs + k]);
    } else {
      if (kept != i) std::copy(from, to, samples.values.begin() + static_cast<std::ptrdiff_t>(kept * each));
      if (outputs == 0) samples.labels[kept] = samples.labels[i];
      for (std::size_t k = 0; k < outputs; ++k) samples.targets[kept * outputs + k] = samples.targets[i * outputs + k];
      ++kept;
    }
  }
  samples.values.resize(kept * each);
  outputs == 0 ? samples.labels.resize(kept) : samples.targets.resize(kept * outputs);
  return taken;
}

template Samples<std::uint8_t> split_off(Samples<std::uint8_t>&, double, std::uint64_t);
template Samples<float> split_off(Samples<float>&, double, std::uint64_t);

Splits image_splits(std::string name, Samples<std::uint8_t> train, Samples<std::uint8_t> test, std::int64_t classes,
                    std::vector<std::string> labels, const OpenOptions& options) {
  const auto normalization = measure(train);
  Splits splits{.name = std::move(name), .labels = std::move(labels)};
  splits.mean = normalization.mean;
  splits.deviation = normalization.deviation;
  if (options.augment && train.shape.size() != 3) throw ConfigError(splits.name + ": only images can be augmented");
  const auto augment = options.augment ? std::optional(options.seed) : std::nullopt;
  splits.train = std::make_shared<ImageSet>(std::move(train), classes, normalization, augment);
  splits.test = std::make_shared<ImageSet>(std::move(test), classes, normalization, std::nullopt);
  return splits;
}

Splits row_splits(std::string name, Samples<float> train, Samples<float> test, std::int64_t classes,
                  std::vector<std::string> labels, const OpenOptions& options) {
  if (options.augment) throw ConfigError(name + ": only images of bytes can be augmented");
  Splits splits{.name = std::move(name), .labels = std::move(labels)};
  splits.train = std::make_shared<RowSet>(std::move(train), classes);
  splits.test = std::make_shared<RowSet>(std::move(test), classes);
  return splits;
}

}  // namespace trireme::data
