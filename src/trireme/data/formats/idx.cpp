// IDX, the format of MNIST: two zero bytes, the type (8: bytes), the number of dimensions, the extents as big-endian
// 32-bit numbers, the values. A set is four files, train- and t10k-, images-idx3-ubyte and labels-idx1-ubyte, or .gz.
#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/data/formats/formats.h"
#include "trireme/data/input.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

// The file as it is named, or with .gz; empty if neither is there.
Path find_idx(const Path& folder, const std::string& name) {
  for (const char* end : {"", ".gz"}) {
    const auto path = folder / (name + end);
    if (std::error_code error; std::filesystem::is_regular_file(path, error)) return path;
  }
  return {};
}

Path must_find(const Path& folder, const std::string& name) {
  auto path = find_idx(folder, name);
  if (path.empty()) bad_file(folder / name, "no such file, nor with .gz");
  return path;
}

// Checks the first bytes and gives the extents, whose product the file can hold.
std::vector<std::int64_t> read_header(Input& input, std::uint32_t dimensions) {
  const auto magic = input.take_u32_big("IDX header");
  if (magic != (0x800u | dimensions)) {
    bad_file(input.path(), 0,
             fmt::format("starts with {:#010x}, but IDX with bytes in {} dimensions starts with {:#010x}", magic,
                         dimensions, 0x800u | dimensions));
  }
  std::vector<std::int64_t> extents;
  std::uint64_t product = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto extent = input.take_u32_big("IDX header");
    if (extent == 0 || product > input.most() / extent) {
      bad_file(input.path(), input.position() - 4,
               fmt::format("extent {} of dimension {} does not fit the size of the file", extent, i + 1));
    }
    product *= extent;
    extents.push_back(extent);
  }
  return extents;
}

Samples<std::uint8_t> read_idx_part(const Path& folder, const std::string& part, std::size_t classes) {
  Samples<std::uint8_t> samples;
  Input images(must_find(folder, part + "-images-idx3-ubyte"));
  const auto extents = read_header(images, 3);
  samples.shape = {1, extents[1], extents[2]};
  samples.values = images.take(static_cast<std::uint64_t>(extents[0] * extents[1] * extents[2]), "images");
  images.expect_end();

  Input labels(must_find(folder, part + "-labels-idx1-ubyte"));
  const auto count = read_header(labels, 1)[0];
  if (count != extents[0]) {
    bad_file(labels.path(), 4,
             fmt::format("{} labels, but {} has {} images", count, images.path().string(), extents[0]));
  }
  for (const auto label : labels.take(static_cast<std::uint64_t>(count), "labels")) {
    if (classes != 0 && label >= classes) {
      bad_file(labels.path(), 8 + samples.labels.size(),
               fmt::format("label {} of sample {} is out of range: there are {} classes", label, samples.labels.size(),
                           classes));
    }
    samples.labels.push_back(label);
  }
  labels.expect_end();
  return samples;
}

}  // namespace

bool is_idx(const Path& path) {
  return !find_idx(path, "train-images-idx3-ubyte").empty() || !find_idx(path, "train-labels-idx1-ubyte").empty();
}

Splits open_idx(const Path& folder, const OpenOptions& options) { return open_idx_as(folder, options, {}); }

Splits open_idx_as(const Path& folder, const OpenOptions& options, std::vector<std::string> labels) {
  auto train = read_idx_part(folder, "train", labels.size());
  auto test = read_idx_part(folder, "t10k", labels.size());
  if (train.shape != test.shape) {
    bad_file(folder, fmt::format("training images are {}x{}, test images {}x{}", train.shape[1], train.shape[2],
                                 test.shape[1], test.shape[2]));
  }
  const auto classes = labels.empty() ? std::max(count_classes(train.labels), count_classes(test.labels))
                                      : static_cast<std::int64_t>(labels.size());
  return image_splits(folder.filename().string(), std::move(train), std::move(test), classes, std::move(labels),
                      options);
}

}  // namespace trireme::data
