// Data sets that lie in memory: bytes for images, floats for rows.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/data/dataset.h"
#include "trireme/data/open.h"

namespace trireme::data {

// What a format reads: values of all samples one after another, and their classes, or the numbers to predict.
template <typename T>
struct Samples {
  std::vector<std::int64_t> shape;  // of one sample
  std::vector<T> values;
  std::vector<std::int64_t> labels;
  std::vector<float> targets = {};  // instead of labels: `outputs` of each sample
  std::int64_t outputs = 0;         // 0: labels

  std::int64_t size() const {
    return outputs > 0 ? static_cast<std::int64_t>(targets.size()) / outputs : static_cast<std::int64_t>(labels.size());
  }
  std::int64_t each() const {
    std::int64_t product = 1;
    for (const auto extent : shape) product *= extent;
    return product;
  }
};

// The number of classes that labels from 0 up need.
std::int64_t count_classes(const std::vector<std::int64_t>& labels);

// Whether so many different labels of so many samples can hardly be classes: numbers or names of the samples
// themselves.
bool too_many_classes(std::size_t different, std::size_t samples);

// The targets of these samples: i64 [n], or f32 [n, outputs].
template <typename T>
void put_targets(const Samples<T>& samples, std::span<const std::int64_t> indices, torch::Tensor& target);

// Throws DataError where one of the numbers to predict, `each` of a sample, is not finite, or not 0 or 1 where it must
// be.
void check_values(const std::filesystem::path& where, std::span<const float> values, std::int64_t each,
                  Targets targets);

// Takes a fraction of the samples out, drawn by seed; at least one where there are two. Both parts stay in order.
template <typename T>
Samples<T> split_off(Samples<T>& samples, double fraction, std::uint64_t seed);

// Images are normalized by the mean and deviation of each channel over `train`.
Splits image_splits(std::string name, Samples<std::uint8_t> train, Samples<std::uint8_t> test, std::int64_t classes,
                    std::vector<std::string> labels, const OpenOptions& options);

// Rows are given as they are.
Splits row_splits(std::string name, Samples<float> train, Samples<float> test, std::int64_t classes,
                  std::vector<std::string> labels, const OpenOptions& options);

}  // namespace trireme::data
