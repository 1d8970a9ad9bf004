// CIFAR-10 in its binary form: data_batch_1.bin … and test_batch.bin; a record is the label, then 32x32 bytes each of
// red, green and blue.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/data/formats/formats.h"
#include "trireme/data/input.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

constexpr std::size_t kImage = 3 * 32 * 32;

// data_batch_*.bin in order, or the one test_batch.bin.
std::vector<Path> find(const Path& folder, std::string_view start) {
  std::vector<Path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(".bin")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Samples<std::uint8_t> read_part(const Path& folder, std::string_view start, std::size_t classes) {
  Samples<std::uint8_t> samples{{3, 32, 32}, {}, {}};
  const auto files = find(folder, start);
  if (files.empty()) bad_file(folder, fmt::format("no file {}*.bin in it", start));
  for (const auto& file : files) {
    const auto bytes = read_file(file);
    if (bytes.empty() || bytes.size() % (1 + kImage) != 0) {
      bad_file(file, bytes.size(), fmt::format("not a whole number of records of {} bytes", 1 + kImage));
    }
    for (std::size_t at = 0; at < bytes.size(); at += 1 + kImage) {
      if (bytes[at] >= classes) {
        bad_file(file, at, fmt::format("label {} is out of range: there are {} classes", bytes[at], classes));
      }
      samples.labels.push_back(bytes[at]);
      samples.values.insert(samples.values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at + 1),
                            bytes.begin() + static_cast<std::ptrdiff_t>(at + 1 + kImage));
    }
  }
  return samples;
}

}  // namespace

bool is_cifar(const Path& path) { return !find(path, "data_batch").empty(); }

Splits open_cifar(const Path& folder, const OpenOptions& options) {
  const std::vector<std::string> labels{"airplane", "automobile", "bird",  "cat",  "deer",
                                        "dog",      "frog",       "horse", "ship", "truck"};
  auto train = read_part(folder, "data_batch", labels.size());
  auto test = read_part(folder, "test_batch", labels.size());
  return image_splits(folder.filename().string(), std::move(train), std::move(test), 10, labels, options);
}

}  // namespace trireme::data
