// A folder of pictures: train/CLASS/*.png|jpg|jpeg and test/CLASS/…; without these two the classes lie in the folder
// itself and a fraction becomes the test part. Classes are in the order of their names.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/data/formats/formats.h"
#include "trireme/data/formats/image.h"
#include "trireme/data/input.h"
#include "trireme/data/stored.h"

namespace trireme::data {
namespace {

bool is_picture(const Path& path) {
  auto end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

std::vector<Path> sorted(const Path& folder, bool (*wanted)(const Path&)) {
  std::vector<Path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (wanted(entry.path())) found.push_back(entry.path());
  }
  if (error) bad_file(folder, error.message());
  std::sort(found.begin(), found.end());
  return found;
}

bool is_folder(const Path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> classes_of(const Path& folder) {
  std::vector<std::string> names;
  for (const auto& path : sorted(folder, is_folder)) names.push_back(path.filename().string());
  return names;
}

// `side` is that of the first image where it is 0.
Samples<std::uint8_t> read_part(const Path& folder, const std::vector<std::string>& classes,
                                std::vector<std::int64_t>& size, std::int64_t side) {
  Samples<std::uint8_t> samples;
  for (std::size_t label = 0; label < classes.size(); ++label) {
    if (!is_folder(folder / classes[label])) continue;
    for (const auto& path : sorted(folder / classes[label], is_picture)) {
      auto image = read_image(path);
      if (side > 0) image = square(image, side);
      if (size.empty()) size = {image.height, image.width};
      if (image.height != size[0] || image.width != size[1]) {
        bad_file(path, fmt::format("{}x{} pixels, but the images before have {}x{}; set an image size", image.width,
                                   image.height, size[1], size[0]));
      }
      for (std::size_t channel = 0; channel < 3; ++channel) {
        for (std::size_t at = channel; at < image.pixels.size(); at += 3) samples.values.push_back(image.pixels[at]);
      }
      samples.labels.push_back(static_cast<std::int64_t>(label));
    }
  }
  if (samples.labels.empty()) bad_file(folder, "no .png, .jpg or .jpeg file in any folder of a class");
  samples.shape = {3, size[0], size[1]};
  return samples;
}

}  // namespace

bool is_image_folder(const Path& path) {
  const auto root = is_folder(path / "train") ? path / "train" : path;
  if (!is_folder(root)) return false;
  for (const auto& folder : sorted(root, is_folder)) {
    if (!sorted(folder, is_picture).empty()) return true;
  }
  return false;
}

Splits open_image_folder(const Path& folder, const OpenOptions& options) {
  const bool parted = is_folder(folder / "train");
  const auto classes = classes_of(parted ? folder / "train" : folder);
  std::vector<std::int64_t> size;
  auto train = read_part(parted ? folder / "train" : folder, classes, size, options.image_size);
  Samples<std::uint8_t> test;
  if (parted && is_folder(folder / "test")) {
    for (const auto& name : classes_of(folder / "test")) {
      if (!std::binary_search(classes.begin(), classes.end(), name)) {
        bad_file(folder / "test" / name, "a class that the training part does not have");
      }
    }
    test = read_part(folder / "test", classes, size, options.image_size);
  } else {
    test = split_off(train, options.test_fraction, options.seed);
  }
  const auto name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  return image_splits(name, std::move(train), std::move(test), static_cast<std::int64_t>(classes.size()), classes,
                      options);
}

}  // namespace trireme::data
