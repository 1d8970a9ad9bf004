// A data set as arrays: x_train, y_train and, where there are any, x_test and y_test; members of one .npz or .npy files
// side by side. Bytes in 3 or 4 dimensions are images, normalized; everything else is taken as it is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "trireme/data/formats/archive.h"
#include "trireme/data/formats/formats.h"
#include "trireme/data/formats/npy.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

using Named = std::map<std::string, Array>;

template <typename From, typename To>
std::vector<To> convert(const Array& array) {
  std::vector<To> values(array.bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, array.bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(value);
  }
  return values;
}

template <typename To>
std::vector<To> values_of(const Array& array) {
  const auto& type = array.type;
  if (type == "|u1" || type == "|b1") return convert<std::uint8_t, To>(array);
  if (type == "|i1") return convert<std::int8_t, To>(array);
  if (type == "<u2") return convert<std::uint16_t, To>(array);
  if (type == "<i2") return convert<std::int16_t, To>(array);
  if (type == "<u4") return convert<std::uint32_t, To>(array);
  if (type == "<i4") return convert<std::int32_t, To>(array);
  if (type == "<u8") return convert<std::uint64_t, To>(array);
  if (type == "<i8") return convert<std::int64_t, To>(array);
  if (type == "<f4") return convert<float, To>(array);
  return convert<double, To>(array);
}

// Numbers to predict, [n] or [n, k]; nothing where they are classes.
std::optional<std::vector<float>> values_to_predict(const Path& where, const Array& array, std::int64_t samples,
                                                    Targets targets) {
  const bool floats = array.type[1] == 'f', asked = targets == Targets::values || targets == Targets::zero_one;
  if (!asked && (!floats || targets == Targets::classes)) return std::nullopt;
  const bool fits = array.shape.size() == 1 || array.shape.size() == 2;
  if (!fits || array.shape[0] != samples || array.size() == 0) {
    bad_file(where, fmt::format("[{}] numbers to predict for {} samples; there must be [{}] or [{}, k]",
                                fmt::join(array.shape, ", "), samples, samples, samples));
  }
  auto values = values_of<float>(array);
  check_values(where, values, array.size() / samples, targets);
  // Classes that were saved as floats would be learned as values.
  if (!asked && std::all_of(values.begin(), values.end(), [](float value) { return value == std::floor(value); })) {
    bad_file(where, "floats that are all whole: predict them as values with --loss mse, or save classes as integers");
  }
  return values;
}

std::vector<std::int64_t> labels_of(const Path& where, const Array& array, std::int64_t samples) {
  if (array.type[1] == 'f') {
    bad_file(where, "labels are floats; they must be whole numbers from 0, or values to predict with --loss mse");
  }
  if (array.size() != samples || array.shape.empty() || array.shape[0] != samples) {
    bad_file(where, fmt::format("{} labels for {} samples", array.size(), samples));
  }
  auto labels = values_of<std::int64_t>(array);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] > 1000000) {
      bad_file(where, fmt::format("label {} of sample {} is out of range: 0 to 1000000", labels[i], i));
    }
  }
  if (const auto different = std::set(labels.begin(), labels.end()).size();
      too_many_classes(different, labels.size())) {
    bad_file(where, fmt::format("{} different labels of {} samples are too many to learn; they must be classes, or "
                                "values to predict with --loss mse",
                                different, labels.size()));
  }
  return labels;
}

// Channels come first; where they lie last, as PIL and TensorFlow have them, they are moved.
std::vector<std::uint8_t> channels_first(const Array& array, std::vector<std::int64_t>& shape) {
  shape.assign(array.shape.begin() + 1, array.shape.end());
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  const bool last = shape[0] != 1 && shape[0] != 3 && (shape[2] == 1 || shape[2] == 3);
  if (!last) return array.bytes;
  const auto channels = static_cast<std::size_t>(shape[2]), plane = static_cast<std::size_t>(shape[0] * shape[1]);
  std::vector<std::uint8_t> moved(array.bytes.size());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const auto sample = i / (plane * channels), pixel = i / channels % plane, channel = i % channels;
    moved[(sample * channels + channel) * plane + pixel] = array.bytes[i];
  }
  shape = {shape[2], shape[0], shape[1]};
  return moved;
}

const Array& must_have(const Path& path, const Named& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    bad_file(path, fmt::format("no array {}; there must be x_train, y_train and perhaps x_test, y_test", name));
  return found->second;
}

template <typename T>
Samples<T> read_part(const Path& path, const Named& arrays, const std::string& part, bool images, Targets targets) {
  const auto& x = must_have(path, arrays, "x_" + part);
  if (x.shape.size() < 2 || x.size() == 0)
    bad_file(path, fmt::format("x_{} needs samples of at least one value", part));
  Samples<T> samples;
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    if (!images || x.type != "|u1" || x.shape.size() < 3 || x.shape.size() > 4)
      bad_file(path, "x_test is of another kind than x_train");
    samples.values = channels_first(x, samples.shape);
  } else {
    samples.shape.assign(x.shape.begin() + 1, x.shape.end());
    samples.values = values_of<float>(x);
    for (std::size_t i = 0; i < samples.values.size(); ++i) {
      if (!std::isfinite(samples.values[i])) {
        bad_file(path, fmt::format("x_{} has a value that is not finite in sample {}", part,
                                   i / static_cast<std::size_t>(samples.each())));
      }
    }
  }
  const auto& y = must_have(path, arrays, "y_" + part);
  const auto where = path / ("y_" + part);
  if (auto values = values_to_predict(where, y, x.shape[0], targets)) {
    samples.targets = std::move(*values);
    samples.outputs = y.size() / x.shape[0];
  } else {
    samples.labels = labels_of(where, y, x.shape[0]);
  }
  return samples;
}

template <typename T>
Splits make(const Path& path, const Named& arrays, const OpenOptions& options, bool images) {
  auto train = read_part<T>(path, arrays, "train", images, options.targets);
  const auto as_train = train.outputs == 0                     ? Targets::classes
                        : options.targets == Targets::zero_one ? Targets::zero_one
                                                               : Targets::values;
  auto test = arrays.contains("x_test") ? read_part<T>(path, arrays, "test", images, as_train)
                                        : split_off(train, options.test_fraction, options.seed);
  if (train.shape != test.shape) bad_file(path, "samples of x_train and x_test have different shapes");
  if (train.outputs != test.outputs) bad_file(path, "y_train and y_test have different numbers of values per sample");
  const auto classes = std::max(count_classes(train.labels), count_classes(test.labels));
  const auto name = path.stem().string();
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return image_splits(name, std::move(train), std::move(test), classes, {}, options);
  } else {
    return row_splits(name, std::move(train), std::move(test), classes, {}, options);
  }
}

Splits make_any(const Path& path, const Named& arrays, const OpenOptions& options) {
  const auto& x = must_have(path, arrays, "x_train");
  const bool images = x.type == "|u1" && (x.shape.size() == 3 || x.shape.size() == 4);
  return images ? make<std::uint8_t>(path, arrays, options, true) : make<float>(path, arrays, options, false);
}

// A folder of arrays is named itself, or by any of them.
Path folder_with(const Path& path) { return path.extension() == ".npy" ? path.parent_path() : path; }

}  // namespace

bool is_npz(const Path& path) {
  std::error_code error;
  return path.extension() == ".npz" && std::filesystem::is_regular_file(path, error);
}

Splits open_npz(const Path& path, const OpenOptions& options) {
  Named arrays;
  static constexpr std::string_view kMembers[] = {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"};
  for (const auto& [name, bytes] : read_zip(path, kMembers)) {
    arrays[name.substr(0, name.size() - 4)] = parse_npy(path / name, bytes);
  }
  return make_any(path, arrays, options);
}

bool is_npy(const Path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(folder_with(path) / "x_train.npy", error);
}

Splits open_npy(const Path& path, const OpenOptions& options) {
  Named arrays;
  std::error_code error;
  for (const char* name : {"x_train", "y_train", "x_test", "y_test"}) {
    const auto file = folder_with(path) / (std::string(name) + ".npy");
    if (std::filesystem::is_regular_file(file, error)) arrays[name] = parse_npy(file, read_file(file));
  }
  return make_any(folder_with(path), arrays, options);
}

}  // namespace trireme::data
