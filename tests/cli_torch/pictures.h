// Pictures a test makes: dark ones and light ones, with a little noise, in files.
#pragma once
#include <png.h>

#include "tests/cli_torch/training.h"

namespace trireme::test {

// Grey levels around `level`, the same for the same `number`.
inline std::string grey_pixels(int count, int level, unsigned number) {
  std::string pixels;
  for (int i = 0; i < count; ++i) {
    number = number * 1664525u + 1013904223u;
    pixels += static_cast<char>(level + static_cast<int>(number >> 27) - 16);
  }
  return pixels;
}

inline void write_png(const fs::path& path, int width, int height, const std::string& grey) {
  fs::create_directories(path.parent_path());
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width);
  png.height = static_cast<png_uint_32>(height);
  png.format = PNG_FORMAT_GRAY;
  ASSERT_NE(png_image_write_to_file(&png, path.c_str(), 0, grey.data(), 0, nullptr), 0) << path;
}

constexpr int kDark = 40, kLight = 200;

// CLASS/N.png of 12x12.
inline void write_image_folder(const fs::path& folder, int each) {
  for (int k = 0; k < each; ++k) {
    write_png(folder / "dark" / fmt::format("{}.png", k), 12, 12, grey_pixels(144, kDark, static_cast<unsigned>(k)));
    write_png(folder / "light" / fmt::format("{}.png", k), 12, 12,
              grey_pixels(144, kLight, static_cast<unsigned>(k) + 1000));
  }
}

// A model that tells them apart.
inline void train_on_pictures(const fs::path& folder, const fs::path& out) {
  write_image_folder(folder, 30);
  run_well(
      {"train",   "--data",  folder.string(), "--model",   "mlp",      "--model-arg", "width=16",  "--epochs", "8",
       "--batch", "8",       "--workers",     "1",         "--launch", "threads",     "--threads", "1",        "--lr",
       "0.05",    "--quiet", "--out",         out.string()});
}

}  // namespace trireme::test
