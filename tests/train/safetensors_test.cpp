#include "trireme/train/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "tests/train/scratch_folder.h"
#include "trireme/base/error.h"
#include "trireme/base/files/checksum.h"

namespace trireme::train {
namespace {

using testing::HasSubstr;

std::string with_header(const std::string& json, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i));
  return bytes + json + data;
}

std::uint64_t sum_of(const std::string& bytes) { return checksum(bytes.data(), bytes.size()); }

NamedTensors samples() {
  torch::manual_seed(3);
  NamedTensors all;
  for (auto type : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
                    torch::kShort, torch::kChar, torch::kByte, torch::kBool}) {
    all.emplace_back(fmt::format("t.{}", c10::toString(type)), torch::randint(0, 2, {3, 5}).to(type));
  }
  all.emplace_back("scalar", torch::tensor(2.5f));
  all.emplace_back("empty", torch::empty({0, 7}));
  all.emplace_back("transposed", torch::randn({4, 6}).t());
  all.emplace_back("sliced", torch::randn({9, 9}).slice(1, 2, 8, 3));
  all.emplace_back("grad", torch::randn({2}).requires_grad_());
  return all;
}

bool equal(const NamedTensors& expected, const NamedTensors& found) {
  if (expected.size() != found.size()) return false;
  for (auto& [name, tensor] : expected) {
    auto same = [&](auto& entry) { return entry.first == name; };
    auto at = std::find_if(found.begin(), found.end(), same);
    if (at == found.end() || at->second.scalar_type() != tensor.scalar_type() || !torch::equal(at->second, tensor)) {
      return false;
    }
  }
  return true;
}

std::string load_error(const std::filesystem::path& path) {
  return message_of<DataError>([&] { SafetensorsFile(path).read_all(); });
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  auto b = torch::tensor({1, 2, 3}, torch::kByte), w = torch::tensor({{1.0f, -2.0f}});
  write_safetensors(path, {{"b\"\n", b}, {"w", w}}, {{"epoch", "{\"n\":1}"}});
  auto header = [](const std::string& sum) {
    return R"({"__metadata__":{"epoch":"{\"n\":1}","trireme.xxh3":")" + sum +
           R"("},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)" +
           R"("b\"\n":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";
  };
  ASSERT_EQ(header(std::string(16, '0')).size() % 8, 0);
  std::string data("\x00\x00\x80\x3f\x00\x00\x00\xc0\x01\x02\x03", 11);
  auto sum = fmt::format("{:016x}", sum_of(header(std::string(16, '0')) + data));
  EXPECT_EQ(content(path), with_header(header(sum), data));
  EXPECT_EQ(SafetensorsFile(path).metadata(), (Metadata{{"epoch", "{\"n\":1}"}}));
}

TEST(Safetensors, ReadsAForeignFile) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  put(path, with_header(" {\"y\" : {\"shape\":[],\"data_offsets\":[2,4],\"dtype\":\"I16\"},\"x\":{\"dtype\":\"BOOL\","
                        "\"shape\":[2],\"data_offsets\":[0,2]}}  ",
                        std::string("\x01\x00\x05\x01", 4)));
  SafetensorsFile file(path);
  EXPECT_FALSE(file.has_checksum());
  EXPECT_EQ(file.entries().at(0).name, "x");
  EXPECT_EQ(file.read("y").item<int>(), 0x105);
  EXPECT_TRUE(
      equal(file.read_all(), {{"x", torch::tensor({true, false})}, {"y", torch::tensor(0x105, torch::kShort)}}));
  put(path, with_header("{}", ""));
  EXPECT_TRUE(SafetensorsFile(path).read_all().empty());
}

TEST(Safetensors, ReturnsWhatItWasGiven) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  write_safetensors(path, samples(), {{"k", "value \u00e9"}});
  SafetensorsFile file(path);
  EXPECT_TRUE(file.has_checksum());
  EXPECT_TRUE(equal(samples(), file.read_all()));
  EXPECT_EQ(file.metadata().at("k"), "value \u00e9");
  for (auto& entry : file.entries()) EXPECT_EQ(entry.begin % safetensors_element_bytes(entry.dtype), 0) << entry.name;
  EXPECT_THAT(message_of<DataError>([&] { file.read("q\nq"); }), HasSubstr("there is no tensor 'q?q'"));
  EXPECT_THAT(message_of<DataError>([&] {
                write_safetensors(path, {{"c", torch::zeros({1}, torch::kComplexFloat)}});
              }),
              HasSubstr("tensor 'c' is of type ComplexFloat"));
  auto one = torch::zeros({1});
  EXPECT_THAT(message_of<DataError>([&] {
                write_safetensors(path, {{"a", one}, {"a", one}});
              }),
              HasSubstr("two tensors cannot both be called 'a'"));
  EXPECT_TRUE(equal(samples(), file.read_all()));
}

TEST(Safetensors, NamesWhatIsWrong) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  auto x = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"("x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  const std::string good = x("U8", "[4]", "[0,4]");
  const std::pair<std::string, std::string> cases[] = {
      {"", "header is no valid JSON"},
      {"[]", "header is no JSON object"},
      {"3", "header is no JSON object"},
      {"{" + good, "header is no valid JSON"},
      {"{" + good + "}}", "header is no valid JSON at its byte"},
      {"{" + good + "," + good + "}", "tensor 'x' is there twice"},
      {"{" + x("F4", "[4]", "[0,4]") + "}", "tensor 'x' has the type 'F4'; known are F64, F32"},
      {"{" + x("U8", "[5]", "[0,4]") + "}", "lies at bytes 0 to 4 of the data; its shape and type need 5"},
      {"{" + x("F32", "[4294967296,4294967296]", "[0,4]") + "}", "has a shape too large"},
      {"{" + x("F32", "[0,9223372036854775807]", "[0,0]") + "}", "has a shape too large"},
      {"{" + x("U8", "[5]", "[0,5]") + "}", "lies at bytes 0 to 5 of the data, which has 4"},
      {"{" + x("U8", "[4]", "[4,0]") + "}", "lies at bytes 4 to 0"},
      {"{" + x("U8", "[3]", "[1,4]") + "}", "after a hole of 1 bytes"},
      {"{" + x("U8", "[3]", "[0,3]") + "}", "1 bytes after the last tensor belong to none"},
      {"{" + x("U8", "[-1]", "[0,4]") + "}", "holds a number below zero"},
      {"{" + x("U8", "[1.5]", "[0,4]") + "}", "not whole"},
      {"{" + x("U8", "[18446744073709551615]", "[0,4]") + "}", "number too large"},
      {"{" + x("U8", "[[4]]", "[0,4]") + "}", "holds a list where none belongs"},
      {"{" + x("U8", "{}", "[0,4]") + "}", "holds an object where none belongs"},
      {"{" + x("U8", "[4]", "[0]") + "}", "needs two data_offsets"},
      {"{" + x("U8", "[4]", "[0,4,4]") + "}", "needs two data_offsets"},
      {"{" + good + R"(,"y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})", "overlaps the tensor before it"},
      {R"({"x":{"dtype":"U8","shape":[4]}})", "tensor 'x' has no data_offsets"},
      {R"({"x":{"dtype":"U8","dtype":"U8"}})", "tensor 'x' has dtype twice"},
      {R"({"x":{"extra":1}})", "has the unknown field 'extra'"},
      {R"({"x":7})", "holds a number where none belongs"},
      {R"({"x":null})", "holds null"},
      {R"({"__metadata__":{"a":1}})", "__metadata__ holds a number"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "__metadata__ has 'a' twice"},
      {R"({"__metadata__":{"trireme.xxh3":"12"},)" + good + "}", "is not 16 hexadecimal digits"},
      {R"({"__metadata__":{"trireme.xxh3":"0123456789abcdef"},)" + good + "}", "the file is damaged"},
      {"{\"x\xff\":{}}", "header is no valid JSON"},
  };
  for (auto& [json, expected] : cases) {
    put(path, with_header(json, std::string("\x01\x02\x03\x04")));
    auto message = load_error(path);
    EXPECT_THAT(message, HasSubstr(expected)) << json;
    EXPECT_THAT(message, testing::StartsWith(path.string() + ": ")) << json;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  put(path, with_header("{" + x("BOOL", "[4]", "[0,4]") + "}", std::string("\x01\x00\x03\x01", 4)));
  EXPECT_THAT(load_error(path), HasSubstr("tensor 'x' holds 3 as a BOOL at byte"));
}

TEST(Safetensors, BelievesNoLengthBeyondTheFile) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  put(path, "1234567");
  EXPECT_THAT(load_error(path), HasSubstr("7 bytes are too short"));
  put(path, std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  EXPECT_THAT(load_error(path), HasSubstr("the header claims 18446744073709551615 bytes; the file has 2"));
  put(path, std::string("\x03\0\0\0\0\0\0\0{}", 10));
  EXPECT_THAT(load_error(path), HasSubstr("the header claims 3 bytes"));
  put(path, with_header(std::string(100'000, '['), ""));
  EXPECT_THAT(load_error(path), HasSubstr("header is no JSON object"));
  EXPECT_THAT(load_error(folder / "none"), HasSubstr("none: No such file or directory"));
  EXPECT_THAT(load_error(folder.path()), HasSubstr("is not a file"));
}

TEST(Safetensors, SurvivesMutation) {
  ScratchFolder folder;
  auto path = folder / "a.safetensors";
  // In memory: a disk would make this minutes.
  int memory = ::memfd_create("broken", MFD_CLOEXEC);
  ASSERT_GE(memory, 0);
  std::filesystem::path broken = fmt::format("/proc/self/fd/{}", memory);
  write_safetensors(path, samples(), {{"note", "{\"a\":[1,2]}"}});
  const auto whole = content(path);
  std::mt19937 random(11);
  int refused = 0;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    auto bytes = whole;
    for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
      // Half of the changes hit the header's first bytes, where they do most.
      auto at = random() % (random() % 2 ? std::min<std::size_t>(bytes.size(), 300) : bytes.size());
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.resize(std::max<std::size_t>(at, 1));
          break;
        default:
          bytes.insert(at, std::string(1 + random() % 9, static_cast<char>(random())));
          break;
      }
    }
    ASSERT_EQ(::ftruncate(memory, 0), 0);
    ASSERT_EQ(::pwrite(memory, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    try {
      SafetensorsFile file(broken);
      auto found = file.read_all();
      // A file whose checksum lost its name is a foreign one, of which nothing is promised.
      if (file.has_checksum()) {
        ASSERT_TRUE(equal(samples(), found)) << "case " << i;
        ASSERT_EQ(file.metadata().at("note"), "{\"a\":[1,2]}");
      }
    } catch (const DataError& error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  ::close(memory);
  EXPECT_GT(refused, kCases * 9 / 10);
}

}  // namespace
}  // namespace trireme::train
