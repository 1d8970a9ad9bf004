#include "trireme/data/formats/image.h"

// jpeglib.h needs these two before it, and jerror.h that one.
// clang-format off
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
#include <jerror.h>
#include <png.h>
// clang-format on

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <string>

#include "trireme/base/error.h"
#include "trireme/data/input.h"

namespace trireme::data {
namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;

// Empty: all is well; otherwise what is wrong.
std::string decode_png(const std::vector<std::uint8_t>& bytes, Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) return png.message;
  png.format = PNG_FORMAT_RGB;
  if (std::uint64_t{png.width} * png.height > kMostPixels) {
    png_image_free(&png);
    return fmt::format("{}x{} pixels are too many", png.width, png.height);
  }
  image.width = png.width;
  image.height = png.height;
  image.pixels.assign(PNG_IMAGE_SIZE(png), 0);
  const bool good = png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) != 0 &&
                    (png.warning_or_error & PNG_IMAGE_ERROR) == 0;
  const std::string message = png.message;
  png_image_free(&png);
  return good ? "" : message.empty() ? "cannot be decoded" : message;
}

struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void jpeg_failed(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  common->err->format_message(common, errors->message);
  std::longjmp(errors->back, 1);
}

// A cut file is only a warning to libjpeg, which makes up the rest; here it is an error.
void jpeg_warned(j_common_ptr common, int level) {
  if (level < 0) jpeg_failed(common);
}

// Only C lives between setjmp and longjmp.
bool decode_jpeg(const std::uint8_t* bytes, std::size_t size, Image& image, JpegErrors& errors) {
  jpeg_decompress_struct jpeg;
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = jpeg_failed;
  errors.manager.emit_message = jpeg_warned;
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_RGB;
  if (std::uint64_t{jpeg.image_width} * jpeg.image_height > kMostPixels) ERREXIT(&jpeg, JERR_IMAGE_TOO_BIG);
  jpeg_start_decompress(&jpeg);
  image.width = jpeg.output_width;
  image.height = jpeg.output_height;
  image.pixels.assign(std::size_t{jpeg.output_width} * jpeg.output_height * 3, 0);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = image.pixels.data() + std::size_t{jpeg.output_scanline} * jpeg.output_width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace

Image read_image(const std::filesystem::path& path) {
  const auto bytes = read_file(path, std::uint64_t{1} << 30);
  Image image;
  if (bytes.size() > 3 && bytes[0] == 0xff && bytes[1] == 0xd8) {
    JpegErrors errors{};
    if (!decode_jpeg(bytes.data(), bytes.size(), image, errors)) {
      bad_file(path, fmt::format("broken JPEG: {}", errors.message));
    }
  } else if (bytes.size() > 3 && bytes[0] == 0x89 && bytes[1] == 'P' && bytes[2] == 'N' && bytes[3] == 'G') {
    if (const auto wrong = decode_png(bytes, image); !wrong.empty()) bad_file(path, "broken PNG: " + wrong);
  } else {
    bad_file(path, 0, "neither PNG nor JPEG");
  }
  return image;
}

Image square(const Image& image, std::int64_t side) {
  const auto span = std::min(image.width, image.height);
  const auto left = (image.width - span) / 2, top = (image.height - span) / 2;
  const double step = static_cast<double>(span) / static_cast<double>(side);
  // How much of source pixel p the new pixel n covers.
  const auto weight = [step](std::int64_t n, std::int64_t p) {
    const double from = static_cast<double>(n) * step, to = from + step, at = static_cast<double>(p);
    return std::max(0.0, std::min(to, at + 1) - std::max(from, at));
  };
  const auto first = [step](std::int64_t n) { return static_cast<std::int64_t>(static_cast<double>(n) * step); };
  const auto last = [&](std::int64_t n) {
    return std::min(span, static_cast<std::int64_t>(std::ceil(static_cast<double>(n + 1) * step)));
  };
  // Along the rows, then down the columns.
  std::vector<double> narrow(static_cast<std::size_t>(span * side * 3));
  for (std::int64_t y = 0; y < span; ++y) {
    for (std::int64_t n = 0; n < side; ++n) {
      for (std::int64_t x = first(n); x < last(n); ++x) {
        const auto* pixel = image.pixels.data() + ((top + y) * image.width + left + x) * 3;
        for (int c = 0; c < 3; ++c)
          narrow[static_cast<std::size_t>((y * side + n) * 3 + c)] += weight(n, x) / step * pixel[c];
      }
    }
  }
  Image result{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3))};
  for (std::int64_t n = 0; n < side; ++n) {
    for (std::int64_t x = 0; x < side * 3; ++x) {
      double sum = 0;
      for (std::int64_t y = first(n); y < last(n); ++y) {
        sum += weight(n, y) / step * narrow[static_cast<std::size_t>(y * side * 3 + x)];
      }
      result.pixels[static_cast<std::size_t>(n * side * 3 + x)] =
          static_cast<std::uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
  return result;
}

torch::Tensor read_input(const std::filesystem::path& path, const Splits& splits) {
  const auto& shape = splits.train->shape().input;
  if (shape.size() != 3 || shape[1] != shape[2] || (shape[0] != 1 && shape[0] != 3) || splits.mean.empty()) {
    throw ConfigError(fmt::format("{}: {} does not hold square images", path.string(), splits.name));
  }
  const auto image = square(read_image(path), shape[1]);
  auto input = torch::empty({1, shape[0], shape[1], shape[2]}, torch::kFloat32);
  auto* to = input.data_ptr<float>();
  for (std::int64_t c = 0; c < shape[0]; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    for (std::size_t pixel = 0; pixel < image.pixels.size(); pixel += 3) {
      const auto* rgb = image.pixels.data() + pixel;
      const float grey = 0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2];
      const float level = (shape[0] == 1 ? grey : static_cast<float>(rgb[channel])) / 255.0f;
      *to++ = (level - splits.mean[channel]) / splits.deviation[channel];
    }
  }
  return input;
}

}  // namespace trireme::data
