// Numbers to predict, from a file to what is predicted.
#include <fmt/format.h>

#include <cmath>

#include "tests/cli_torch/training.h"

namespace trireme::test {
namespace {

class Regression : public ::testing::Test {
 protected:
  // price = 30 + 3 a - 2 b, the columns in other units.
  void SetUp() override {
    std::ofstream table(folder / "prices.csv");
    table << "a,b,price,dear\n";
    for (int i = 0; i < 300; ++i) {
      const double a = i * 37 % 101, b = i * 53 % 97;
      const double price = 30 + 3 * a - 2 * b + 0.25;
      table << fmt::format("{},{},{},{}\n", a, b, price, price > 80 ? 1 : 0);
    }
  }
  Words learn(const std::string& out, const Words& more) const {
    return Words{"train",
                 "--model",
                 "mlp",
                 "--model-arg",
                 "width=16",
                 "--data",
                 (folder / "prices.csv").string(),
                 "--workers",
                 "2",
                 "--launch",
                 "threads",
                 "--threads",
                 "1",
                 "--batch",
                 "16",
                 "--epochs",
                 "30",
                 "--schedule",
                 "constant",
                 "--lr",
                 "0.01",
                 "--optimizer",
                 "adam",
                 "--trace-steps",
                 "0",
                 "--out",
                 (folder / out).string()} +
           more;
  }
  // Rows of a and b, as a file.
  std::string rows(const std::vector<float>& values) const {
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}", values.size() / 2);
    header.resize(117, ' ');
    const auto path = folder / "rows.npy";
    std::ofstream(path, std::ios::binary)
        << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << "\n"
        << std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return path.string();
  }
  ScratchFolder folder;
};

TEST_F(Regression, FromATableToPredictions) {
  // Without a fourth column.
  std::ofstream table(folder / "prices.csv");
  table << "a,b,price\n";
  for (int i = 0; i < 300; ++i)
    table << fmt::format("{},{},{}\n", i * 37 % 101, i * 53 % 97,
                         3.0 * (i * 37 % 101) / 100 - 0.5 * (i * 53 % 97) / 100 + 0.25);
  table.close();
  expect_refusal(run(learn("no", {})), 7, "predict values with --loss mse");
  EXPECT_FALSE(fs::exists(folder / "no"));

  const auto out = run_well(learn("run", {"--loss", "mse", "--metric", "r2,mse"})).out;
  EXPECT_THAT(out, HasSubstr("test r2        0.9"));
  EXPECT_THAT(out, HasSubstr("test mse"));
  EXPECT_THAT(out, Not(HasSubstr("accuracy")));
  const auto summary = json_in(folder / "run" / "run.json")["summary"];
  EXPECT_GT(summary["test_r2"].get<double>(), 0.95);
  EXPECT_FALSE(summary.contains("test_accuracy"));
  EXPECT_EQ(summary["metric"], "r2");

  const auto from = (folder / "run").string();
  const auto eval = run_well({"eval", "--from", from, "--metric", "mae"}).out;
  EXPECT_THAT(eval, HasSubstr("\nmae         0."));
  EXPECT_THAT(eval, Not(HasSubstr("class")));
  const auto file = rows({10, 20, 90, 5});
  const auto lines = json_lines(run_well({"predict", "--from", from, "--json", file}).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NEAR(lines[0]["values"][0].get<double>(), 0.3 - 0.1 + 0.25, 0.3);
  EXPECT_NEAR(lines[1]["values"][0].get<double>(), 2.7 - 0.025 + 0.25, 0.3);
  EXPECT_THAT(run_well({"predict", "--from", from, file}).out, HasSubstr("rows.npy[1]: "));
  expect_refusal(run({"predict", "--from", from, "--top", "2", file}), 2, "--top");

  // Another loss is another task; so is another measure of the best.
  expect_refusal(run({"train", "--resume", from, "--loss", "mae", "--metric", "r2"}), 2, "was made with mse");
  expect_refusal(run({"train", "--resume", from, "--metric", "mse"}), 2, "was made with r2");
  run_well({"train", "--resume", from, "--epochs", "31", "--metric", "r2,mae"});
  EXPECT_GE(json_in(folder / "run" / "run.json")["summary"]["best_r2"].get<double>(), summary["best_r2"].get<double>());
}

TEST_F(Regression, OfZerosAndOnes) {
  run_well(learn("run", {"--loss", "bce", "--label-column", "dear"}));
  const auto summary = json_in(folder / "run" / "run.json")["summary"];
  EXPECT_GT(summary["test_accuracy"].get<double>(), 0.9);
  EXPECT_FALSE(summary.contains("diverged"));
  expect_refusal(run(learn("no", {"--loss", "bce", "--label-column", "price"})), 7, "is neither 0 nor 1");
}

// A resumed run ends with the weights of one that was not stopped, and compares by the same measure.
TEST_F(Regression, GoesOnExactly) {
  const Words how{"--loss", "mae", "--label-column", "price", "--epochs", "3", "--workers", "1"};
  run_well(learn("once", how));
  run_well(learn("twice", how + Words{"--steps", "21"}));
  run_well({"train", "--resume", (folder / "twice").string(), "--steps", "0"});
  EXPECT_EQ(weights(folder / "once"), weights(folder / "twice"));
  const auto once = json_in(folder / "once" / "run.json")["summary"],
             twice = json_in(folder / "twice" / "run.json")["summary"];
  EXPECT_EQ(once["test_mae"], twice["test_mae"]);
}

}  // namespace
}  // namespace trireme::test
