#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

struct Csv : testing::Test {
  Splits read(const std::string& text, const OpenOptions& options = {}) {
    write(file, text);
    return open(file.string(), options);
  }
  std::string error(const std::string& text, const OpenOptions& options = {}) {
    write(file, text);
    return error_of(file.string(), file.string(), options);
  }
  Folder folder;
  std::filesystem::path file = folder / "table.csv";
};

// Undoes the normalization.
torch::Tensor values(const Splits& splits) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < splits.train->size(); ++i) all.push_back(i);
  return splits.train->get(all).input * torch::tensor(splits.deviation) + torch::tensor(splits.mean);
}

TEST_F(Csv, ReadsNumbersAndWords) {
  const std::string body = "1,2.5,cat\n3,-4e1,dog\n5,6,cat\n7,8,ant\n";
  for (const std::string header : {"", "width,height,animal\n"}) {
    const auto splits = read(header + body, {.test_fraction = 0.25});
    EXPECT_EQ(splits.train->size(), 3);
    EXPECT_EQ(splits.test->size(), 1);
    EXPECT_EQ(splits.labels, (std::vector<std::string>{"ant", "cat", "dog"}));
    EXPECT_EQ(splits.train->shape().input, (std::vector<std::int64_t>{2}));
    const auto rows = values(splits);
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto first = rows[i][0].item<float>();
      const auto label = splits.train->get(std::vector<std::int64_t>{i}).target.item<std::int64_t>();
      EXPECT_EQ(label, first > 6 ? 0 : first > 2 && first < 4 ? 2 : 1);
    }
    const auto normal = splits.train->get(std::vector<std::int64_t>{0, 1, 2}).input;
    EXPECT_TRUE(torch::allclose(normal.mean(0), torch::zeros(2), 1e-4, 1e-5));
    EXPECT_TRUE(torch::allclose(normal.std(0, false), torch::ones(2), 1e-4, 1e-5));
  }
}

TEST_F(Csv, OtherSeparatorsQuotesAndLabelColumns) {
  EXPECT_EQ(read("a;b;c\n1;2;0\n3;4;1\n").train->shape().classes, 2);
  EXPECT_EQ(read("1\t2\t0\r\n3\t4\t1\r\n").train->shape().classes, 2);
  const auto splits =
      read("\"kind, or so\",x\n\"a \"\"b\"\"\",1\n\"c,d\",2\nplain,3\n", {.label_column = "kind, or so"});
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"a \"b\"", "c,d", "plain"}));
  EXPECT_EQ(read("0,1,2\n1,3,4\n", {.label_column = "1"}).train->shape().classes, 2);
  EXPECT_EQ(read("1,10\n2,9\n3,10\n").labels, (std::vector<std::string>{"9", "10"}));
}

TEST_F(Csv, NumbersThatAreEqualAreOneClass) {
  const auto splits = read("7,1\n8,1.0\n9,2\n6,02\n5,1e0\n4,-0.0\n3,0\n");
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"-0.0", "1", "02"}));
  EXPECT_EQ(read("7,1\n8,1.0\n9,a\n").train->shape().classes, 3) << "words are as written";
}

TEST_F(Csv, ValuesToPredictAreTakenAsTheyAre) {
  const std::string text = "a,b,price\n1,5,250000.5\n2,6,-1e3\n3,7,250000.5\n4,9,17\n";
  const auto splits = read(text, {.test_fraction = 0.25, .targets = Targets::values});
  EXPECT_EQ(splits.train->shape().values, 1);
  EXPECT_EQ(splits.train->shape().classes, 0);
  EXPECT_EQ(splits.train->size(), 3);
  EXPECT_EQ(splits.test->size(), 1);
  const auto rows = values(splits);
  const auto targets = splits.train->get(std::vector<std::int64_t>{0, 1, 2}).target;
  ASSERT_EQ(targets.sizes(), (std::vector<std::int64_t>{3, 1}));
  const std::map<float, float> prices{{1, 250000.5f}, {2, -1000}, {3, 250000.5f}, {4, 17}};
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(targets[i][0].item<float>(), prices.at(std::round(rows[i][0].item<float>())));
  }
  EXPECT_EQ(read(text, {.label_column = "a", .targets = Targets::values}).train->shape().input[0], 2);
  EXPECT_NE(error("1,2,0.5\n3,4,x\n", {.targets = Targets::values}).find("csv:2:3: 'x' is not a finite number"),
            std::string::npos);
  EXPECT_NE(error("1,2,1\n3,4,0.5\n", {.targets = Targets::zero_one}).find("csv:2:3: '0.5' is neither 0 nor 1"),
            std::string::npos);
  EXPECT_NE(error("1,2,1\n3,4,0.5\n").find("predict values with --loss mse"), std::string::npos);
}

TEST_F(Csv, ErrorsNameLineAndColumn) {
  EXPECT_NE(error("1,2,a\n3,x,b\n").find("table.csv:2:2: 'x' is not a finite number"), std::string::npos);
  EXPECT_NE(error("a,b,c\n1,2,a\n\n3,nan,b\n").find("table.csv:4:2:"), std::string::npos);
  EXPECT_NE(error("1,2,a\n3,4\n").find("table.csv:2:2: 2 fields, but the first line has 3"), std::string::npos);
  EXPECT_NE(error("1,2,a\n3,,b\n").find("table.csv:2:2: the field is empty"), std::string::npos);
  EXPECT_NE(error("1,2,a\n3,4,\"b\n").find("a quote is not closed"), std::string::npos);
  EXPECT_NE(error("").find("fewer than two lines with values"), std::string::npos);
  EXPECT_NE(error("1,2,a\n").find("fewer than two"), std::string::npos);
  EXPECT_NE(error("1\n2\n").find("one column"), std::string::npos);
  EXPECT_THROW(read("1,2,a\n3,4,b\n", {.label_column = "colour"}), ConfigError);
  EXPECT_THROW(read("1,2,a\n3,4,b\n", {.test_fraction = 1}), ConfigError);
}

TEST_F(Csv, ColumnsThatAreNoClassesAreRefused) {
  std::string prices, numbers, fractions;
  for (int i = 0; i < 600; ++i) {
    prices += fmt::format("{},{}\n", i % 7, 250000 + 13 * i);
    numbers += fmt::format("{},house {}\n", i % 7, i);
    fractions += fmt::format("{},{}\n", i % 7, 0.5 * (i % 5));
  }
  EXPECT_NE(error(prices).find("600 different classes in 600 lines, such as '250000'"), std::string::npos);
  EXPECT_NE(error(numbers).find("600 different classes"), std::string::npos);
  EXPECT_NE(error(fractions).find("'0.5' in the column of the classes is no class"), std::string::npos);
  EXPECT_EQ(read(fractions, {.label_column = "1"}).train->shape().classes, 7) << "the other column";
}

TEST_F(Csv, ErrorsQuoteTheBeginningOfALongField) {
  const auto said = error("1,2,a\n3," + std::string(20 << 20, 'x') + ",b\n");
  EXPECT_NE(said.find(":2:2: 'xxx"), std::string::npos) << said.substr(0, 200);
  EXPECT_NE(said.find("x…' is not a finite number"), std::string::npos);
  EXPECT_LT(said.size(), 400u);
}

TEST_F(Csv, AnyBytesOpenOrAreAnError) {
  write(file, "x,y,kind\n1,2.5,cat\n3,-4e1,dog\n5,6,\"cat\"\n7,8,ant\n");
  expect_survives(file.string(), file, 500);
}

}  // namespace
}  // namespace trireme::data
