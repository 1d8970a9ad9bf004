#include <cmath>

#include "tests/cli_torch/pictures.h"

namespace trireme::test {
namespace {

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
  header.resize(118 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header + values;
}

// One model for all that is asked of it.
class Predict : public ::testing::Test {
 protected:
  void SetUp() override { train_on_pictures(folder_ / "pictures", folder_ / "run"); }
  Finished predict(const Words& more) { return run(Words{"predict", "--from", (folder_ / "run").string()} + more); }
  std::string file(const std::string& name) { return (folder_ / name).string(); }

  ScratchFolder folder_;
};

TEST_F(Predict, Pictures) {
  write_png(folder_ / "night.png", 12, 12, grey_pixels(144, kDark, 5));
  write_png(folder_ / "snow.png", 40, 30, grey_pixels(1200, kLight, 6));
  auto done = predict({file("night.png"), file("snow.png")});
  EXPECT_EQ(done.code, 0);
  auto lines = lines_of(done.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], ::testing::StartsWith(file("night.png") + ": dark "));
  EXPECT_THAT(lines[1], ::testing::StartsWith(file("snow.png") + ": light "));
  EXPECT_EQ(done.err, fmt::format("trireme: {}: scaled from 40x30 to 12x12\n", file("snow.png")));

  auto json = json_lines(predict({"--json", "--top", "2", file("night.png"), file("snow.png")}).out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["label"], "dark");
  EXPECT_EQ(json[0]["class"], 0);
  EXPECT_EQ(json[0]["top"].size(), 2u);
  EXPECT_NEAR(json[0]["top"][0]["probability"].get<double>() + json[0]["top"][1]["probability"].get<double>(), 1, 1e-5);
  EXPECT_EQ(json[1]["label"], "light");
  EXPECT_THAT(json[1]["note"].get<std::string>(), HasSubstr("scaled"));
}

TEST_F(Predict, ManySamplesInOneFile) {
  const auto dark = grey_pixels(144, kDark, 1), light = grey_pixels(144, kLight, 2);
  // The model has three channels, as pictures have; so have these arrays.
  std::string interleaved[2];
  for (int k = 0; k < 2; ++k) {
    for (int channel = 0; channel < 3; ++channel) interleaved[k] += k == 0 ? dark : light;
  }
  put(folder_ / "many.npy", npy("|u1", "3, 3, 12, 12", interleaved[1] + interleaved[0] + interleaved[1]));
  put(folder_ / "one.npy", npy("|u1", "3, 12, 12", interleaved[0]));
  auto json = json_lines(predict({"--json", file("many.npy"), file("one.npy")}).out);
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["label"], "light");
  EXPECT_EQ(json[1]["label"], "dark");
  EXPECT_EQ(json[1]["index"], 1);
  EXPECT_EQ(json[2]["label"], "light");
  EXPECT_EQ(json[3]["label"], "dark");
}

TEST_F(Predict, RefusesWhatIsNotFinite) {
  std::vector<float> values(2 * 3 * 144, 0.5f);
  values[3 * 144 + 13] = NAN;
  put(folder_ / "nan.npy",
      npy("<f4", "2, 3, 12, 12", {reinterpret_cast<const char*>(values.data()), 4 * values.size()}));
  expect_refusal(predict({file("nan.npy")}), 7, "nan.npy: a value that is not finite in sample 1, at [0, 1, 1]");
}

TEST_F(Predict, GoesOnAfterWhatItCannotRead) {
  write_png(folder_ / "good.png", 12, 12, grey_pixels(144, kDark, 5));
  const auto png = contents(folder_ / "good.png");
  put(folder_ / "cut.png", png.substr(0, png.size() / 2));
  put(folder_ / "empty.png", "");
  put(folder_ / "text.jpg", "no picture");
  put(folder_ / "shape.npy", npy("|u1", "2, 5, 5", std::string(50, 'x')));
  put(folder_ / "cut.npy", npy("|u1", "2, 3, 12, 12", std::string(50, 'x')));
  put(folder_ / "cut.idx", std::string("\0\0\x08\x03", 4) + big_endian(900) + big_endian(12) + big_endian(12) + "xx");
  const Words bad{file("missing.png"), file("cut.png"), file("empty.png"), file("text.jpg"),
                  file("shape.npy"),   file("cut.npy"), file("cut.idx")};
  auto done = predict(bad + Words{file("good.png")});
  EXPECT_EQ(done.code, 7);
  auto errors = lines_of(done.err);
  ASSERT_EQ(errors.size(), bad.size()) << done.err;
  for (std::size_t k = 0; k < bad.size(); ++k) {
    EXPECT_TRUE(errors[k].starts_with("trireme: " + bad[k] + ": ")) << errors[k];
  }
  EXPECT_EQ(lines_of(done.out).size(), 1u);
}

TEST_F(Predict, Refuses) {
  expect_refusal(predict({}), 2, "files");
  expect_refusal(predict({"--top", "0", "x.png"}), 2, "--top");
  expect_refusal(predict({"--temperature", "-1", "x.png"}), 2, "--temperature");
  expect_refusal(run({"predict", "--from", file("nowhere"), "x.png"}), 7, "nowhere");
}

// The test part of the data in its own format: as right as eval says.
TEST(PredictIdx, IsAsRightAsEval) {
  ScratchFolder folder;
  std::string images, labels;
  for (unsigned k = 0; k < 40; ++k) {
    images += grey_pixels(144, k % 2 ? kLight : kDark, k);
    labels += static_cast<char>(k % 2);
  }
  for (const char* part : {"train", "t10k"}) {
    put(folder / (std::string(part) + "-images-idx3-ubyte"),
        big_endian(0x803) + big_endian(40) + big_endian(12) + big_endian(12) + images);
    put(folder / (std::string(part) + "-labels-idx1-ubyte"), big_endian(0x801) + big_endian(40) + labels);
  }
  run_well({"train", "--data", folder.path().string(), "--model", "mlp", "--model-arg", "width=8", "--batch", "8",
            "--workers", "1", "--launch", "threads", "--threads", "1", "--quiet", "--out", (folder / "run").string()});
  auto accuracy = json_lines(run_well({"eval", "--from", (folder / "run").string(), "--json"}).out)[0]["accuracy"];
  auto lines = json_lines(
      run_well({"predict", "--from", (folder / "run").string(), "--json", (folder / "t10k-images-idx3-ubyte").string()})
          .out);
  ASSERT_EQ(lines.size(), 40u);
  int right = 0;
  for (int k = 0; k < 40; ++k) right += lines[static_cast<std::size_t>(k)]["class"] == k % 2;
  EXPECT_EQ(right / 40.0, accuracy.get<double>());
  EXPECT_EQ(lines[0]["label"], "class 0");
}

class PredictText : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int k = 0; k < 800; ++k) text += "añb ";
    std::ofstream(folder_ / "text.txt") << text;
    run_well({"train",       "--data",      (folder_ / "text.txt").string(),
              "--length",    "8",           "--model",
              "lstm-lm",     "--model-arg", "width=16",
              "--model-arg", "layers=1",    "--model-arg",
              "dropout=0",   "--optimizer", "adam",
              "--lr",        "0.02",        "--batch",
              "8",           "--epochs",    "3",
              "--workers",   "1",           "--launch",
              "threads",     "--threads",   "1",
              "--quiet",     "--out",       (folder_ / "run").string()});
  }
  Finished predict(const Words& more, const std::string& input = "") {
    StartOptions options;
    options.input = input;
    return run(Words{"predict", "--from", (folder_ / "run").string()} + more, options);
  }

  ScratchFolder folder_;
};

TEST_F(PredictText, GoesOnWithThePrompt) {
  put(folder_ / "prompt", "añb a");
  auto done = predict({"--tokens", "7", "--temperature", "0", (folder_ / "prompt").string()});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.out, "añb añb añb \n");
  auto json = json_lines(predict({"--tokens", "2", "--temperature", "0", "--json", "-"}, "ñb ").out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["prompt"], "ñb ");
  EXPECT_EQ(json[0]["text"], "añ");
}

TEST_F(PredictText, IsDrawnBySeed) {
  const Words wild{"--tokens", "40", "--temperature", "50"};
  auto a = predict(wild + Words{"-"}, "a").out, b = predict(wild + Words{"-"}, "a").out;
  EXPECT_EQ(a, b);
  EXPECT_NE(a, predict(wild + Words{"--seed", "2", "-"}, "a").out);
  auto done = predict({"-"}, "\xff");
  EXPECT_EQ(done.code, 7);
  EXPECT_EQ(done.err, "trireme: standard input: not UTF-8 (at byte 0)\n");
}

}  // namespace
}  // namespace trireme::test
