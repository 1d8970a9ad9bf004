// Samples that belong to no data set, read as the set a model was trained on would give them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/dataset.h"

namespace trireme::data {

// What must be known of a data set once it is not at hand: what a checkpoint keeps of it.
struct Look {
  std::string name;
  Shape shape;
  std::vector<std::string> labels;     // as in Splits
  std::vector<float> mean, deviation;  // as in Splits
};
Look look_of(const Splits& splits);

struct ReadSamples {
  torch::Tensor input;       // f32 [n, shape…], normalized
  bool many = false;         // the file can hold several
  std::string changed = {};  // what was done to an image to make it fit; empty: nothing
};

// PNG and JPEG; NPY, and IDX, plain or gzip, of one or many samples. Pictures of another size are cut to the square in
// the middle and scaled, as image folders are; where the model's images are not square, bilinearly. Throws DataError
// naming the file.
ReadSamples read_samples(const std::filesystem::path& path, const Look& look);

// Symbols of a text by number, unknown ones as U+FFFD, and back. Where the symbols have no names a text is numbers
// with blanks between them. Throws DataError; `where` names the text.
std::vector<std::int64_t> to_symbols(std::string_view text, const Look& look, std::string_view where);
std::string to_text(const std::vector<std::int64_t>& symbols, const Look& look);

}  // namespace trireme::data
