// Files the tests write, in a folder that vanishes; and ways to break them.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "trireme/base/error.h"
#include "trireme/base/files/remove_tree.h"
#include "trireme/data/open.h"

namespace trireme::data {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "trireme-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { remove_tree(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_gz(const std::filesystem::path& path, const std::string& bytes) {
  const auto file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

inline std::string big32(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}

inline std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// What the error says; the call must throw a DataError of one line that names `path`.
inline std::string error_of(const std::string& spec, const std::string& path, const OpenOptions& options = {}) {
  try {
    open(spec, options);
  } catch (const DataError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(path), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  ADD_FAILURE() << spec << " opened, but should not";
  return {};
}

// Cuts `file` at many lengths: every cut is one DataError that names it.
inline void expect_cuts_found(const std::string& spec, const std::filesystem::path& file,
                              const OpenOptions& options = {}) {
  const auto whole = slurp(file);
  const auto step = std::max<std::size_t>(1, whole.size() / 150);
  for (std::size_t length = 0; length < whole.size(); length += length < 150 ? 1 : step) {
    write(file, whole.substr(0, length));
    error_of(spec, file.parent_path().string(), options);
    if (testing::Test::HasFailure()) FAIL() << "cut at " << length;
  }
  write(file, whole);
}

// Changes bytes of `file` at random, mostly near its start: it opens, or it is one DataError; never anything else.
inline void expect_survives(const std::string& spec, const std::filesystem::path& file, int rounds,
                            const OpenOptions& options = {}) {
  const auto whole = slurp(file);
  std::mt19937_64 random(20240607);
  for (int round = 0; round < rounds; ++round) {
    auto bytes = whole;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const auto reach = random() % 4 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 80);
      static constexpr unsigned char kEdges[] = {0, 1, 0x7f, 0x80, 0xff, '9', ','};
      bytes[random() % reach] = static_cast<char>(random() % 2 ? kEdges[random() % 7] : random());
    }
    write(file, bytes);
    try {
      const auto splits = open(spec, options);
      if (splits.train->size() > 0) splits.train->get(std::vector<std::int64_t>{0});
    } catch (const DataError&) {
    }
  }
  write(file, whole);
}

}  // namespace trireme::data
