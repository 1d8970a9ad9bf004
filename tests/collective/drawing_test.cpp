#include "trireme/collective/draw/drawing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/error.h"

namespace trireme::drawing_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const Caption kCaption{"title </script> & more", "summary", {{"rounds", "some"}}};

Call call_of(const Algorithm& algorithm, int ranks) {
  std::size_t count = algorithm.what == Collective::barrier ? 0 : has_blocks(algorithm.what) ? 1 : ranks;
  return {algorithm.what, 0, ranks, has_root(algorithm.what) ? ranks - 1 : 0, count, count};
}

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(DrawText, ShowsEveryAlgorithm) {
  for (const Algorithm& algorithm : algorithms()) {
    for (int ranks : {1, 2, 5, 13, 40}) {
      SCOPED_TRACE(fmt::format("{} {} on {}", name(algorithm.what), algorithm.name, ranks));
      Trace trace(algorithm, call_of(algorithm, ranks));
      std::string text = draw_text(trace, kCaption, {});
      EXPECT_THAT(text, HasSubstr("start\n"));
      if (trace.rounds() > 0) {
        EXPECT_THAT(text, HasSubstr(fmt::format("round {} of {}", trace.rounds(), trace.rounds())));
      }
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_FALSE(line.ends_with(' ')) << line;
        if (line.starts_with("  rank") && line.find(':') == std::string::npos) {
          EXPECT_LE(columns_of(line), 100u) << line;
        }
      }
    }
  }
}

TEST(DrawText, ColoursOnlyWhenAsked) {
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  Trace trace(ring, call_of(ring, 3));
  EXPECT_THAT(draw_text(trace, kCaption, {}), Not(HasSubstr("\033")));
  EXPECT_THAT(draw_text(trace, kCaption, {.color = true}), HasSubstr("\033[1;32m"));
}

TEST(DescribeRound, SaysWhatHappens) {
  auto said = [](Collective what, const char* algorithm, int ranks, int round) {
    const Algorithm& chosen = find_algorithm(what, algorithm);
    return describe_round(Trace(chosen, call_of(chosen, ranks)), round);
  };
  EXPECT_EQ(said(Collective::all_reduce, "ring", 4, 0),
            "Every rank sends to its right neighbour, and what arrives is added.");
  EXPECT_EQ(said(Collective::all_reduce, "butterfly", 8, 1),
            "Partners at distance 2 exchange, and what arrives is added.");
  EXPECT_EQ(said(Collective::all_reduce, "naive", 4, 0), "Every rank sends to every other, and what arrives is kept.");
  EXPECT_EQ(said(Collective::broadcast, "flat", 4, 0), "Rank 3 sends to 3 others, and what arrives is kept.");
  EXPECT_EQ(said(Collective::barrier, "dissemination", 8, 1),
            "Every rank sends to the one 2 further on, to say who has arrived.");
  EXPECT_EQ(said(Collective::all_reduce, "direct", 4, 0),
            "Every rank folds its own part of everybody's memory and stores the sum in everybody's output.");
}

json data_of(const std::string& page) {
  constexpr std::string_view kOpen = "id=\"data\">";
  std::size_t begin = page.find(kOpen) + kOpen.size();
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

// The page's data must tell the same story as the schedule: after the last round everybody holds what is wanted.
TEST(DrawPage, IsSelfContainedAndComplete) {
  for (const Algorithm& algorithm : algorithms()) {
    SCOPED_TRACE(fmt::format("{} {}", name(algorithm.what), algorithm.name));
    std::string page = draw_page(Trace(algorithm, call_of(algorithm, 6)), algorithm, kCaption);
    for (const char* outside : {"<link", "src=", "url(http", "@import", "fetch("}) {
      EXPECT_THAT(page, Not(HasSubstr(outside)));
    }
    json data = data_of(page);
    EXPECT_EQ(data["title"], kCaption.title);
    json state = data["start"];
    for (const json& round : data["rounds"]) {
      for (const json& change : round["changes"]) {
        state[change[0].get<int>()][change[1].get<int>()][change[2].get<int>()] = change[3];
      }
    }
    if (algorithm.what == Collective::barrier && algorithm.shared) continue;  // a synchronization moves nothing
    std::size_t output = 0;
    while (!data["buffers"][output]["output"].get<bool>()) ++output;
    for (int rank = 0; rank < 6; ++rank) {
      for (std::size_t chunk = 0; chunk < data["wanted"][rank].size(); ++chunk) {
        if (data["wanted"][rank][chunk] == 0) continue;
        EXPECT_EQ(state[rank][output][chunk], data["wanted"][rank][chunk]) << "rank " << rank;
      }
    }
  }
}

TEST(DrawPage, TreesHaveOneRoot) {
  const Algorithm& tree = find_algorithm(Collective::broadcast, "tree");
  json parents = data_of(draw_page(Trace(tree, call_of(tree, 7)), tree, kCaption))["parents"];
  ASSERT_EQ(parents.size(), 7u);
  EXPECT_EQ(parents[6], -1);
  EXPECT_EQ(std::count(parents.begin(), parents.end(), json(6)), 2);
}

TEST(DrawPage, RefusesMoreRanksThanFit) {
  const Algorithm& ring = find_algorithm(Collective::all_reduce, "ring");
  EXPECT_THROW(draw_page(Trace(ring, call_of(ring, 33)), ring, kCaption), ConfigError);
}

}  // namespace
}  // namespace trireme::drawing_test
