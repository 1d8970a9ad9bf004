#include "trireme/data/single_sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>

#include "trireme/base/error.h"
#include "trireme/data/formats/image.h"
#include "trireme/data/formats/npy.h"
#include "trireme/data/input.h"

namespace trireme::data {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string size_text(const Sizes& sizes) { return fmt::format("{}", fmt::join(sizes, "x")); }

bool is_image(const Sizes& shape) { return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3); }

// f32 [n, shape…] of values from 0 to 1, or of columns.
torch::Tensor normalized(torch::Tensor values, const Look& look) {
  const auto known = static_cast<std::int64_t>(look.mean.size());
  if (known == 0) return values;
  const bool columns = look.shape.input.size() == 1 && known == look.shape.input[0];
  const Sizes view = columns ? Sizes{1, known} : Sizes{1, known, 1, 1};
  return (values - torch::tensor(look.mean).view(view)) / torch::tensor(look.deviation).view(view);
}

// f32 [3, height, width] from 0 to 255.
torch::Tensor planes(const Image& image) {
  auto bytes = torch::empty({image.height, image.width, 3}, torch::kUInt8);
  std::copy(image.pixels.begin(), image.pixels.end(), bytes.data_ptr<std::uint8_t>());
  return bytes.permute({2, 0, 1}).to(torch::kFloat32);
}

ReadSamples read_picture(const std::filesystem::path& path, const Look& look) {
  const auto& shape = look.shape.input;
  if (!is_image(shape)) {
    throw DataError(
        fmt::format("{}: a picture, but the model was trained on samples of {}", path.string(), size_text(shape)));
  }
  auto image = read_image(path);
  ReadSamples read;
  const bool fits = image.height == shape[1] && image.width == shape[2];
  if (!fits) read.changed = fmt::format("scaled from {}x{} to {}x{}", image.width, image.height, shape[2], shape[1]);
  if (!fits && shape[1] == shape[2]) image = square(image, shape[1]);
  auto pixels = planes(image);
  if (pixels.size(1) != shape[1] || pixels.size(2) != shape[2]) {
    pixels = torch::upsample_bilinear2d(pixels.unsqueeze(0), {shape[1], shape[2]}, /*align_corners=*/false).squeeze(0);
  }
  if (shape[0] == 1) pixels = (pixels[0] * 0.299 + pixels[1] * 0.587 + pixels[2] * 0.114).unsqueeze(0);
  read.input = normalized(pixels.unsqueeze(0) / 255, look);
  return read;
}

// Bytes as images are kept, of as many samples as there are.
torch::Tensor from_bytes(const std::vector<std::uint8_t>& bytes, const Sizes& sizes) {
  auto tensor = torch::empty(sizes, torch::kUInt8);
  std::copy(bytes.begin(), bytes.end(), tensor.data_ptr<std::uint8_t>());
  return tensor;
}

torch::ScalarType type_of(const std::filesystem::path& path, const std::string& type) {
  static const std::map<std::string, torch::ScalarType> kTypes{
      {"|u1", torch::kUInt8}, {"|i1", torch::kInt8},  {"|b1", torch::kBool},    {"<i2", torch::kInt16},
      {"<i4", torch::kInt32}, {"<i8", torch::kInt64}, {"<f4", torch::kFloat32}, {"<f8", torch::kFloat64}};
  const auto found = kTypes.find(type);
  if (found == kTypes.end()) bad_file(path, fmt::format("samples of type '{}' are not read; save them as f4", type));
  return found->second;
}

// [n, …] or one sample, in the model's shape; where an image has one channel it may be left out.
torch::Tensor as_samples(const std::filesystem::path& path, torch::Tensor array, const Sizes& shape) {
  Sizes sizes = array.sizes().vec();
  Sizes whole{array.dim() > 0 ? array.size(0) : 0};
  whole.insert(whole.end(), shape.begin(), shape.end());
  Sizes flat = whole;
  if (is_image(shape) && shape[0] == 1) flat.erase(flat.begin() + 1);
  if (sizes == whole || sizes == flat) return array.reshape(whole);
  whole[0] = 1;
  flat.erase(flat.begin());
  if (sizes == shape || (flat.size() + 1 == shape.size() && sizes == flat)) return array.reshape(whole);
  bad_file(path, fmt::format("holds {}, but the model wants samples of {}", size_text(sizes), size_text(shape)));
}

ReadSamples read_array(const std::filesystem::path& path, const Look& look) {
  const auto array = parse_npy(path, read_file(path));
  if (array.bytes.empty()) bad_file(path, "has no values");
  const auto type = type_of(path, array.type);
  auto values = torch::empty(array.shape, type);
  std::copy(array.bytes.begin(), array.bytes.end(), static_cast<std::uint8_t*>(values.data_ptr()));
  auto samples = as_samples(path, values, look.shape.input).to(torch::kFloat32);
  const bool bytes = type == torch::kUInt8 && is_image(look.shape.input);
  // Floats in the shape of images are taken as the model wants them.
  if (bytes) return {normalized(samples / 255, look), true};
  return {look.shape.input.size() == 1 ? normalized(samples, look) : samples, true};
}

ReadSamples read_idx(const std::filesystem::path& path, const Look& look) {
  Input input(path);
  const auto magic = input.take_u32_big("IDX header");
  if (magic != 0x802 && magic != 0x803) bad_file(path, 0, "neither PNG, JPEG, NPY nor IDX with images");
  Sizes sizes;
  std::uint64_t product = 1;
  for (std::uint32_t i = 0; i < (magic & 0xff); ++i) {
    const auto extent = input.take_u32_big("IDX header");
    if (extent == 0 || product > input.most() / extent) {
      bad_file(path, input.position() - 4, fmt::format("extent {} does not fit the size of the file", extent));
    }
    product *= extent;
    sizes.push_back(extent);
  }
  auto values = from_bytes(input.take(product, "images"), sizes);
  input.expect_end();
  return {normalized(as_samples(path, values, look.shape.input).to(torch::kFloat32) / 255, look), true};
}

std::vector<std::int64_t> to_numbers(std::string_view text, const Look& look, std::string_view where) {
  std::vector<std::int64_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    if (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') {
      ++at;
      continue;
    }
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0 || number >= look.shape.classes) {
      throw DataError(fmt::format("{}: symbols of {} are numbers from 0 to {} (at byte {})", where, look.name,
                                  look.shape.classes - 1, at - text.data()));
    }
    numbers.push_back(number);
    at = stop;
  }
  return numbers;
}

}  // namespace

Look look_of(const Splits& splits) {
  return {splits.name, splits.train->shape(), splits.labels, splits.mean, splits.deviation};
}

ReadSamples read_samples(const std::filesystem::path& path, const Look& look) {
  const auto first = Input(path).take(1, "first byte")[0];
  if (first == 0x93) return read_array(path, look);
  if (first == 0) return read_idx(path, look);
  return read_picture(path, look);
}

std::vector<std::int64_t> to_symbols(std::string_view text, const Look& look, std::string_view where) {
  if (look.labels.empty()) return to_numbers(text, look, where);
  std::map<std::string_view, std::int64_t> numbers;
  for (std::size_t i = 0; i < look.labels.size(); ++i) numbers.emplace(look.labels[i], static_cast<std::int64_t>(i));
  const auto unknown = numbers.find("\xef\xbf\xbd");
  std::vector<std::int64_t> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[at]);
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    bool good = length > 0 && text.size() - at >= length;
    for (std::size_t i = 1; good && i < length; ++i) good = static_cast<std::uint8_t>(text[at + i]) >> 6 == 2;
    if (!good) throw DataError(fmt::format("{}: not UTF-8 (at byte {})", where, at));
    auto found = numbers.find(text.substr(at, length));
    if (found == numbers.end()) found = unknown;
    if (found == numbers.end()) {
      throw DataError(
          fmt::format("{}: '{}' is no symbol of {} (at byte {})", where, text.substr(at, length), look.name, at));
    }
    symbols.push_back(found->second);
    at += length;
  }
  return symbols;
}

std::string to_text(const std::vector<std::int64_t>& symbols, const Look& look) {
  if (look.labels.empty()) return fmt::format("{}", fmt::join(symbols, " "));
  std::string text;
  for (const auto symbol : symbols) text += look.labels.at(static_cast<std::size_t>(symbol));
  return text;
}

}  // namespace trireme::data
