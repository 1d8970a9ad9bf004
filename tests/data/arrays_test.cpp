#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

std::string npy(const std::string& type, const std::string& shape, const std::string& bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type, shape);
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little(header.size(), 2) + header + bytes;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string deflated(const std::string& bytes) {
  std::string packed(bytes.size() + 1000, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Written by the description of the format, as numpy.savez and savez_compressed do.
std::string zip(const std::map<std::string, std::string>& members, bool compress) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const auto packed = compress ? deflated(bytes) : bytes;
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const auto common = little(20, 2) + little(0, 2) + little(compress ? 8 : 0, 2) + little(0, 4) + little(sum, 4) +
                        little(packed.size(), 4) + little(bytes.size(), 4) + little(name.size(), 2);
    directory += "PK\1\2" + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) + little(0, 2) +
                 little(0, 4) + little(file.size(), 4) + name;
    file += "PK\3\4" + common + little(0, 2) + name + packed;
  }
  const auto start = file.size();
  return file + directory + "PK\5\6" + little(0, 4) + little(members.size(), 2) + little(members.size(), 2) +
         little(directory.size(), 4) + little(start, 4) + little(0, 2);
}

std::map<std::string, std::string> rows() {
  std::vector<float> x(12);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.5f;
  return {{"x_train.npy", npy("<f4", "(4, 3)", raw(x))},
          {"y_train.npy", npy("<i8", "(4,)", raw(std::vector<std::int64_t>{0, 2, 1, 0}))},
          {"x_test.npy", npy("<f8", "(1, 3)", raw(std::vector<double>{9, 8, 7}))},
          {"y_test.npy", npy("|u1", "(1, 1)", raw(std::vector<std::uint8_t>{1}))}};
}

TEST(Arrays, NpzStoredAndDeflatedReadBack) {
  Folder folder;
  for (const bool compress : {false, true}) {
    const auto file = folder / "rows.npz";
    write(file, zip(rows(), compress));
    const auto splits = open(file.string());
    EXPECT_EQ(splits.name, "rows");
    EXPECT_EQ(splits.train->shape().input, (std::vector<std::int64_t>{3}));
    EXPECT_EQ(splits.train->shape().classes, 3);
    const auto batch = splits.train->get(std::vector<std::int64_t>{3, 0});
    EXPECT_TRUE(torch::equal(batch.input, torch::tensor({{4.5f, 5.0f, 5.5f}, {0.0f, 0.5f, 1.0f}})));
    EXPECT_TRUE(torch::equal(splits.test->get(std::vector<std::int64_t>{0}).input, torch::tensor({{9.f, 8.f, 7.f}})));
    expect_cuts_found(file.string(), file);
    expect_survives(file.string(), file, 300);
  }
}

TEST(Arrays, NpyFilesSideBySide) {
  Folder folder;
  for (const auto& [name, bytes] : rows()) write(folder / name, bytes);
  for (const auto& spec : {folder.path(), folder / "x_train.npy"}) {
    EXPECT_EQ(open(spec.string()).train->size(), 4);
  }
  const auto file = folder / "x_train.npy";
  expect_cuts_found(folder.path().string(), file);
  expect_survives(folder.path().string(), file, 400);
  write(file, npy("<f4", "(99999999999999, 99999999999999)", ""));
  EXPECT_NE(error_of(folder.path().string(), file.string()).find("more values than there are"), std::string::npos);
  write(file, npy("<c8", "(1, 3)", std::string(24, '\0')));
  EXPECT_NE(error_of(folder.path().string(), file.string()).find("'<c8'"), std::string::npos);
  write(file, npy("<f4", "(1, 1)", raw(std::vector<float>{std::nanf("")})));
  EXPECT_NE(error_of(folder.path().string(), folder.path().string()).find("not finite in sample 0"), std::string::npos);
}

TEST(Arrays, BytesAreImagesAndChannelsMoveToTheFront) {
  Folder folder;
  std::vector<std::uint8_t> first(2 * 3 * 4 * 5), last(first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<std::uint8_t>(i * 11);
    const auto sample = i / 60, channel = i / 20 % 3, pixel = i % 20;
    last[sample * 60 + pixel * 3 + channel] = first[i];
  }
  const auto y = npy("<i4", "(2,)", raw(std::vector<std::int32_t>{0, 1}));
  write(folder / "a.npz", zip({{"x_train.npy", npy("|u1", "(2, 3, 4, 5)", raw(first))}, {"y_train.npy", y}}, true));
  write(folder / "b.npz", zip({{"x_train.npy", npy("|u1", "(2, 4, 5, 3)", raw(last))}, {"y_train.npy", y}}, true));
  const auto a = open((folder / "a.npz").string()), b = open((folder / "b.npz").string());
  EXPECT_EQ(b.train->shape().input, (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_EQ(a.test->size(), 1);
  EXPECT_TRUE(
      torch::equal(a.train->get(std::vector<std::int64_t>{0}).input, b.train->get(std::vector<std::int64_t>{0}).input));
}

TEST(Arrays, ValuesToPredict) {
  Folder folder;
  const auto file = folder / "rows.npz";
  const auto with = [&](const std::string& train, const std::string& test, const OpenOptions& options = {}) {
    auto members = rows();
    members["y_train.npy"] = train;
    members["y_test.npy"] = test;
    write(file, zip(members, true));
    return open(file.string(), options);
  };
  const std::vector<std::int64_t> all{3, 0};
  // Floats with fractions are values; so are other numbers where that is asked for.
  const auto two = with(npy("<f4", "(4, 2)", raw(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7.5f})),
                        npy("<f8", "(1, 2)", raw(std::vector<double>{1, 2})));
  EXPECT_EQ(two.train->shape().values, 2);
  EXPECT_TRUE(torch::equal(two.train->get(all).target, torch::tensor({{6.0f, 7.5f}, {0.0f, 1.0f}})));
  EXPECT_TRUE(torch::equal(two.test->get(std::vector<std::int64_t>{0}).target, torch::tensor({{1.0f, 2.0f}})));
  const auto whole = npy("<i8", "(4,)", raw(std::vector<std::int64_t>{0, 2, -1, 300}));
  const auto one = with(whole, npy("|u1", "(1,)", raw(std::vector<std::uint8_t>{1})), {.targets = Targets::values});
  EXPECT_TRUE(torch::equal(one.train->get(all).target, torch::tensor({{300.0f}, {0.0f}})));
  // Without a test part some are split off, with their values.
  auto alone = rows();
  alone.erase("x_test.npy");
  alone.erase("y_test.npy");
  alone["y_train.npy"] = npy("<f4", "(4,)", raw(std::vector<float>{0.5f, 1.5f, 2.5f, 3.5f}));
  write(file, zip(alone, false));
  const auto split = open(file.string(), {.test_fraction = 0.25});
  ASSERT_EQ(split.train->size(), 3);
  const auto batch = split.train->get(std::vector<std::int64_t>{0, 1, 2});
  // x[i][0] is 1.5 i.
  EXPECT_TRUE(torch::allclose(batch.target.squeeze(1), batch.input.select(1, 0) / 1.5 + 0.5));

  const auto refused = [&](const std::string& train, const OpenOptions& options = {}) {
    auto members = rows();
    members["y_train.npy"] = train;
    write(file, zip(members, true));
    return error_of(file.string(), file.string(), options);
  };
  const auto floats = [](const std::vector<float>& values) { return npy("<f4", "(4,)", raw(values)); };
  EXPECT_NE(refused(floats({0, 1, 2, 1})).find("floats that are all whole"), std::string::npos);
  EXPECT_NE(refused(floats({0, 1, std::nanf(""), 1.5f})).find("the target of sample 2 is not finite"),
            std::string::npos);
  EXPECT_NE(refused(floats({0, 1, 2, 1}), {.targets = Targets::zero_one}).find("the target 2 of sample 2 is neither"),
            std::string::npos);
  EXPECT_NE(refused(floats({0, 1.5f, 2, 1}), {.targets = Targets::classes}).find("labels are floats"),
            std::string::npos);
  EXPECT_NE(refused(npy("<f4", "(2, 2)", std::string(16, '\0'))).find("[2, 2] numbers to predict for 4 samples"),
            std::string::npos);
}

TEST(Arrays, SaysWhatIsWrong) {
  Folder folder;
  const auto file = folder / "rows.npz";
  const auto with = [&](const std::string& name, const std::string& bytes) {
    auto members = rows();
    members[name] = bytes;
    if (bytes.empty()) members.erase(name);
    write(file, zip(members, true));
    return error_of(file.string(), file.string());
  };
  EXPECT_NE(
      with("y_train.npy", npy("<i8", "(4,)", raw(std::vector<std::int64_t>{0, 2, -1, 0}))).find("label -1 of sample 2"),
      std::string::npos);
  EXPECT_NE(
      with("y_train.npy", npy("<i8", "(2,)", raw(std::vector<std::int64_t>{0, 2}))).find("2 labels for 4 samples"),
      std::string::npos);
  EXPECT_NE(with("y_train.npy", npy("<f4", "(4,)", std::string(16, '\0'))).find("floats"), std::string::npos);
  EXPECT_NE(with("x_train.npy", "").find("no array x_train"), std::string::npos);
  EXPECT_NE(with("y_test.npy", "").find("no array y_test"), std::string::npos);
}

}  // namespace
}  // namespace trireme::data
