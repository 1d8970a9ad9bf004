// UTF-8 text for models that predict the next symbol. A symbol is a code point of the training part; what only the test
// part has becomes U+FFFD. The end of the text is the test part; samples are sequences one after another.
#include <fmt/format.h>

#include <cmath>

#include "trireme/base/error.h"
#include "trireme/data/formats/formats.h"
#include "trireme/data/formats/image_set.h"
#include "trireme/data/input.h"

namespace trireme::data {
namespace {

constexpr char32_t kUnknown = 0xfffd, kCodePoints = 0x110000;

class TextSet final : public Dataset {
 public:
  TextSet(std::vector<std::int32_t> symbols, std::int64_t length, std::int64_t vocabulary)
      : symbols_(std::move(symbols)), shape_{{length}, vocabulary, true} {}

  // The last symbol of a sequence needs the one after it as its target.
  std::int64_t size() const override { return (static_cast<std::int64_t>(symbols_.size()) - 1) / shape_.input[0]; }
  const Shape& shape() const override { return shape_; }

  Batch get(std::span<const std::int64_t> indices) const override {
    Batch batch = empty_batch(shape_, indices.size());
    auto* input = batch.input.data_ptr<std::int64_t>();
    auto* target = batch.target.data_ptr<std::int64_t>();
    for (const auto index : indices) {
      TRIREME_CHECK(index >= 0 && index < size());
      const auto* from = symbols_.data() + index * shape_.input[0];
      for (std::int64_t i = 0; i < shape_.input[0]; ++i) {
        *input++ = from[i];
        *target++ = from[i + 1];
      }
    }
    return batch;
  }

 private:
  const std::vector<std::int32_t> symbols_;
  const Shape shape_;
};

std::u32string decode(const Path& path, const std::vector<std::uint8_t>& bytes) {
  std::u32string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint8_t lead = bytes[at];
    const std::size_t more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : 9;
    if (more == 9 || bytes.size() - at <= more) bad_file(path, at, "not UTF-8");
    char32_t point = more == 0 ? lead : lead & (0x3f >> more);
    for (std::size_t i = 1; i <= more; ++i) {
      if (bytes[at + i] >> 6 != 2) bad_file(path, at + i, "not UTF-8");
      point = point << 6 | (bytes[at + i] & 0x3f);
    }
    static constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      bad_file(path, at, "not UTF-8");
    text += point;
    at += more + 1;
  }
  return text;
}

std::string encode(char32_t point) {
  if (point < 0x80) return {static_cast<char>(point)};
  std::string text;
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static constexpr int kLead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(static_cast<char32_t>(kLead[more]) | point >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (point >> (6 * i) & 0x3f));
  return text;
}

// The code points of `text` and the unknown one, in order, each once.
std::u32string vocabulary_of(std::u32string_view text) {
  std::vector<bool> seen(kCodePoints);
  for (const auto point : text) seen[point] = true;
  seen[kUnknown] = true;
  std::u32string vocabulary;
  for (char32_t point = 0; point < kCodePoints; ++point) {
    if (seen[point]) vocabulary += point;
  }
  return vocabulary;
}

std::vector<std::int32_t> number(std::u32string_view text, const std::u32string& vocabulary) {
  const auto unknown = static_cast<std::int32_t>(vocabulary.find(kUnknown));
  std::vector<std::int32_t> places(kCodePoints, unknown), numbers;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) places[vocabulary[i]] = static_cast<std::int32_t>(i);
  numbers.reserve(text.size());
  for (const auto point : text) numbers.push_back(places[point]);
  return numbers;
}

}  // namespace

bool is_text(const Path& path) {
  std::error_code error;
  return path.extension() == ".txt" && std::filesystem::is_regular_file(path, error);
}

Splits open_text(const Path& path, const OpenOptions& options) {
  if (options.augment) throw ConfigError(fmt::format("{}: only images can be augmented", path.string()));
  if (options.length < 1 || options.length > (1 << 20)) {
    throw ConfigError(fmt::format("sequence length {}: from 1 to {}", options.length, 1 << 20));
  }
  if (!(options.test_fraction > 0 && options.test_fraction < 1)) {
    throw ConfigError("the test fraction must lie between 0 and 1");
  }
  const auto text = decode(path, read_file(path, std::uint64_t{1} << 30));
  const auto test = static_cast<std::size_t>(std::llround(static_cast<double>(text.size()) * options.test_fraction));
  const auto need = static_cast<std::size_t>(options.length) + 1;
  if (test < need || text.size() - test < need) {
    bad_file(path,
             fmt::format("{} symbols are too few for sequences of {} in both parts", text.size(), options.length));
  }
  const auto train_text = std::u32string_view(text).substr(0, text.size() - test);
  const auto vocabulary = vocabulary_of(train_text);

  Splits splits{.name = path.stem().string()};
  const auto size = static_cast<std::int64_t>(vocabulary.size());
  const auto make = [&](std::u32string_view part) {
    return std::make_shared<TextSet>(number(part, vocabulary), options.length, size);
  };
  splits.train = make(train_text);
  splits.test = make(std::u32string_view(text).substr(text.size() - test));
  for (const auto point : vocabulary) splits.labels.push_back(encode(point));
  return splits;
}

}  // namespace trireme::data
