#include <gtest/gtest.h>
#include <stdio.h>
// jpeglib.h needs stdio.h before it.
#include <jpeglib.h>
#include <png.h>

#include "tests/data/files.h"
#include "trireme/data/formats/fetch_convert.h"
#include "trireme/data/formats/image.h"

namespace trireme::data {
namespace {

Image pattern(std::int64_t width, std::int64_t height, int start) {
  Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height * 3; ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(start + i * 7 + i / 5));
  }
  return image;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  std::filesystem::create_directories(path.parent_path());
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  ASSERT_NE(png_image_write_to_file(&png, path.c_str(), 0, image.pixels.data(), 0, nullptr), 0);
}

void write_jpeg(const std::filesystem::path& path, const Image& image) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  FILE* file = fopen(path.c_str(), "wb");
  jpeg_stdio_dest(&jpeg, file);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(image.pixels.data() + jpeg.next_scanline * jpeg.image_width * 3);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  fclose(file);
}

TEST(Images, PngReadsBackExactlyAndJpegNearly) {
  Folder folder;
  const auto image = pattern(13, 9, 0);
  write_png(folder / "a.png", image);
  EXPECT_EQ(read_image(folder / "a.png").pixels, image.pixels);
  const Image flat{16, 8, std::vector<std::uint8_t>(16 * 8 * 3, 77)};
  write_jpeg(folder / "a.jpg", flat);
  const auto back = read_image(folder / "a.jpg");
  EXPECT_EQ(back.width, 16);
  EXPECT_EQ(back.height, 8);
  for (const int value : back.pixels) EXPECT_NEAR(value, 77, 2);
}

// Exhaustive for PNG; of a JPEG the last two bytes are only its end mark.
TEST(Images, CutOrBrokenFilesAreErrors) {
  Folder folder;
  write_png(folder / "x/a.png", pattern(13, 9, 0));
  write_png(folder / "y/b.png", pattern(13, 9, 5));
  const auto spec = folder.path().string();
  expect_survives(spec, folder / "x/a.png", 300);
  const auto png = slurp(folder / "x/a.png");
  for (std::size_t length = 0; length + 12 < png.size(); ++length) {
    write(folder / "x/a.png", png.substr(0, length));
    error_of(spec, (folder / "x/a.png").string());
  }
  std::filesystem::remove(folder / "x/a.png");
  write_jpeg(folder / "x/a.jpg", pattern(13, 9, 0));
  expect_survives(spec, folder / "x/a.jpg", 300);
  const auto jpeg = slurp(folder / "x/a.jpg");
  for (std::size_t length = 0; length + 2 < jpeg.size(); ++length) {
    write(folder / "x/a.jpg", jpeg.substr(0, length));
    error_of(spec, (folder / "x/a.jpg").string());
  }
}

TEST(Images, SquareIsTheMeanOfWhatItCovers) {
  Image image{6, 4, std::vector<std::uint8_t>(6 * 4 * 3)};
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 6; ++x)
      image.pixels[static_cast<std::size_t>((y * 6 + x) * 3)] = static_cast<std::uint8_t>(x * 10 + y);
  }
  const auto half = square(image, 2);  // columns 1 to 4
  EXPECT_EQ(half.pixels[0], 16);       // mean of 10, 20, 11, 21 is 15.5
  EXPECT_EQ(half.pixels[9], 38);       // mean of 32, 42, 33, 43 is 37.5
  const auto same = square(image, 4);
  EXPECT_EQ(same.pixels[0], 10);
  EXPECT_EQ(square(image, 8).pixels[0], 10);
}

TEST(Images, FolderWithPartsAndWithout) {
  Folder folder;
  for (int i = 0; i < 4; ++i) {
    write_png(folder / ("a/train/cat/" + std::to_string(i) + ".png"), pattern(6, 6, i));
    write_png(folder / ("a/train/dog/" + std::to_string(i) + ".png"), pattern(6, 6, 50 + i));
    write_png(folder / ("b/cat/" + std::to_string(i) + ".PNG"), pattern(6, 6, i));
  }
  write_png(folder / "a/test/dog/0.png", pattern(6, 6, 99));
  const auto splits = open((folder / "a").string());
  EXPECT_EQ(splits.train->size(), 8);
  EXPECT_EQ(splits.test->size(), 1);
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(splits.train->get(std::vector<std::int64_t>{5}).target.item<std::int64_t>(), 1);
  EXPECT_TRUE(torch::allclose(splits.train->get(std::vector<std::int64_t>{5}).input,
                              read_input(folder / "a/train/dog/1.png", splits), 1e-4, 1e-5));
  EXPECT_EQ(open((folder / "b").string(), {.test_fraction = 0.5}).test->size(), 2);

  write_png(folder / "a/train/cat/z.png", pattern(9, 7, 0));
  EXPECT_NE(error_of((folder / "a").string(), "z.png").find("9x7 pixels"), std::string::npos);
  EXPECT_EQ(open((folder / "a").string(), {.image_size = 3}).train->shape().input,
            (std::vector<std::int64_t>{3, 3, 3}));
  write_png(folder / "a/test/bird/0.png", pattern(6, 6, 99));
  error_of((folder / "a").string(), "bird", {.image_size = 6});
}

TEST(Images, CifarFromItsPackage) {
  Folder folder;
  std::string labels = "[";
  for (int i = 0; i < 50000; ++i) labels += std::to_string(i % 10) + (i == 49999 ? "]" : ",");
  write(folder / "package/train_lables.json", labels);
  write(folder / "package/test_lables.json", "[3,4]");
  for (int batch = 1; batch <= 5; ++batch) {
    write_png(folder / ("package/data_batch_" + std::to_string(batch) + ".png"), pattern(1024, 3, batch));
  }
  const auto image = pattern(1024, 2, 9);
  write_png(folder / "package/test_batch.png", image);
  std::filesystem::create_directories(folder / "made");
  convert_cifar10(folder / "package", folder / "made");
  const auto splits = open((folder / "made").string());
  EXPECT_EQ(splits.train->size(), 15);
  const auto batch = splits.test->get(std::vector<std::int64_t>{1});
  EXPECT_EQ(batch.target.item<std::int64_t>(), 4);
  const float expected = static_cast<float>(image.pixels[(1024 + 33) * 3 + 2]) / 255.0f;
  EXPECT_NEAR(batch.input[0][2][1][1].item<float>() * splits.deviation[2] + splits.mean[2], expected, 1e-5);

  const auto file = folder / "made/test_batch.bin";
  const auto whole = slurp(file);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{3072}, std::size_t{3074}, whole.size() - 1}) {
    write(file, whole.substr(0, length));
    error_of((folder / "made").string(), file.string());
  }
  write(file, whole.substr(0, 3073) + "\12" + whole.substr(3074));
  EXPECT_NE(error_of((folder / "made").string(), file.string()).find("label 10 is out of range"), std::string::npos);
}

}  // namespace
}  // namespace trireme::data
