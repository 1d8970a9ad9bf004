// What a model learns from: samples by number, and what a model must know of their shape. A data set is immutable and
// read from any thread; how it lies on disk is the business of one file per format.
#pragma once
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trireme::data {

// Some samples, stacked along the first dimension.
struct Batch {
  torch::Tensor
      input;  // images: f32 [n, channels, height, width], normalized; rows: f32 [n, columns]; text: i64 [n, length]
  torch::Tensor target;  // classes: i64 [n]; text: i64 [n, length], the input moved on by one; values: f32 [n, values]
};

// What every sample of a data set looks like.
struct Shape {
  std::vector<std::int64_t> input;  // of one sample: {1, 28, 28}, {784}, or {length} for text
  std::int64_t classes = 0;         // of the target; for text the size of the vocabulary
  bool text = false;                // predict the next symbol at each place, instead of one class per sample
  std::int64_t values = 0;          // predict so many numbers per sample, instead of a class; 0: classes or text

  std::int64_t outputs() const { return values > 0 ? values : classes; }  // of a model, for a sample or symbol
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual const Shape& shape() const = 0;
  // The samples with these numbers, in this order. Safe from any thread.
  virtual Batch get(std::span<const std::int64_t> indices) const = 0;
  // The same for training: varied at random where the set was opened to augment, the same way for the same epoch.
  virtual Batch draw(std::span<const std::int64_t> indices, [[maybe_unused]] std::int64_t epoch) const {
    return get(indices);
  }
};

// A name and its two parts. They have the same shape and the same normalization.
struct Splits {
  std::string name;
  std::shared_ptr<const Dataset> train;  // shared: loaders on several threads read it
  std::shared_ptr<const Dataset> test;
  std::vector<std::string> labels;  // names of the classes, where known; for text the symbols
  // What was subtracted and divided by: images (as 0 to 1) per channel, CSV per column; empty where values are as
  // given.
  std::vector<float> mean, deviation;
};

// ---- Of tensors that a program has already.

// Samples are the rows of `input`, f32 [n, …], and of `target`: classes, i64 [n], from 0 to `classes` − 1. Both are
// kept, not copied: leave them as they are. Throws DataError where they do not fit.
std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target, std::int64_t classes);
// The same with numbers to predict: f32 [n, k].
std::shared_ptr<const Dataset> of_tensors(torch::Tensor input, torch::Tensor target);

}  // namespace trireme::data
