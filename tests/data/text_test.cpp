#include <gtest/gtest.h>

#include "tests/data/files.h"

namespace trireme::data {
namespace {

TEST(Text, SequencesSpellTheTextAndTargetsAreOneOn) {
  Folder folder;
  std::string text;
  std::vector<std::string> symbols;
  for (int i = 0; i < 200; ++i)
    symbols.push_back(std::vector<std::string>{"a", "é", "—", "🚣", "\n", "z"}[i * i % 7 % 6]);
  for (const auto& symbol : symbols) text += symbol;
  write(folder / "t.txt", text);
  const auto splits = open((folder / "t.txt").string(), {.test_fraction = 0.2, .length = 10});
  EXPECT_EQ(splits.train->size(), 15);
  EXPECT_EQ(splits.test->size(), 3);
  EXPECT_EQ(splits.train->shape().classes, static_cast<std::int64_t>(splits.labels.size()));
  for (const auto& [set, offset] : {std::pair{splits.train, 0}, std::pair{splits.test, 160}}) {
    for (std::int64_t i = 0; i < set->size(); ++i) {
      const auto batch = set->get(std::vector<std::int64_t>{i});
      for (std::int64_t j = 0; j < 10; ++j) {
        const auto at = static_cast<std::size_t>(offset + i * 10 + j);
        EXPECT_EQ(splits.labels.at(static_cast<std::size_t>(batch.input[0][j].item<std::int64_t>())), symbols[at]);
        EXPECT_EQ(splits.labels.at(static_cast<std::size_t>(batch.target[0][j].item<std::int64_t>())), symbols[at + 1]);
      }
    }
  }
}

TEST(Text, SymbolsOfTheTestPartAloneAreUnknown) {
  Folder folder;
  write(folder / "t.txt", std::string(80, 'a') + std::string(20, 'b'));
  const auto splits = open((folder / "t.txt").string(), {.test_fraction = 0.2, .length = 4});
  EXPECT_EQ(splits.labels, (std::vector<std::string>{"a", "\xef\xbf\xbd"}));
  EXPECT_EQ(splits.test->get(std::vector<std::int64_t>{0}).input.sum().item<std::int64_t>(), 4);
}

TEST(Text, SaysWhereItIsNotUtf8) {
  Folder folder;
  const auto file = folder / "t.txt";
  for (const char* bad :
       {"\xff", "\xc3", "\xc3(", "\xc0\x80", "\xed\xa0\x80", "\xf8\x88\x80\x80", "\xf4\x90\x80\x80", "\x80"}) {
    write(file, std::string(500, 'x') + bad);
    EXPECT_NE(error_of(file.string(), file.string()).find("not UTF-8 (at byte 50"), std::string::npos) << bad;
  }
  write(file, "short");
  EXPECT_NE(error_of(file.string(), file.string()).find("too few"), std::string::npos);
  EXPECT_THROW(open(file.string(), {.length = 0}), ConfigError);
}

}  // namespace
}  // namespace trireme::data
