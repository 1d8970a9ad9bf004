#include "trireme/mesh/draw/drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/base/error.h"
#include "trireme/mesh/draw/page.h"

namespace trireme::pipelines {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::size_t columns_of(std::string_view line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(PipelineDrawing, ShowsTheChart) {
  auto text = draw_text(picture_of("1f1b", 3, 4, 1, 1, 2), {false, false, 60});
  EXPECT_THAT(text, HasSubstr("1f1b on 3 stages with 4 micro-batches\n"));
  EXPECT_THAT(text, HasSubstr("\nstage 0   0─1─2─········0━━━3─1━━━··2━━━··3━━━\n"
                              "stage 1   ··0─1─····0━━━2─1━━━3─2━━━··3━━━····\n"
                              "stage 2   ····0─0━━━1─1━━━2─2━━━3─3━━━········\n"
                              "          |0        |5        |10       |15\n"));
  EXPECT_THAT(text, HasSubstr("stage 0         12       6   33.3%       3\n"));
  EXPECT_THAT(text, HasSubstr("formula   (S−1)/(M+S−1) = 33.33 %\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(draw_text(picture_of("1f1b", 3, 4, 1, 1, 2), {true, false, 60}), HasSubstr("\x1b[0;34m0─"));
}

TEST(PipelineDrawing, TellsWeightsAndChunksApart) {
  EXPECT_THAT(draw_text(picture_of("zero-bubble", 2, 2, 1, 1, 2), {false, false, 40}),
              HasSubstr("stage 1   ····0───0━━━1───1━━━0┄┄┄1┄┄┄"));
  auto text = draw_text(picture_of("interleaved", 2, 2, 2, 1, 1), {false, false, 50});
  EXPECT_THAT(text, HasSubstr("interleaved on 2 stages of 2 chunks with 2 micro-batches"));
  EXPECT_THAT(text, HasSubstr("stage 0   0a──1a──0b──1b──"));
}

TEST(PipelineDrawing, EveryKindStaysWithinTheWidth) {
  for (const PipelineKind& kind : kinds()) {
    for (int micro_batches : {1, 12, 300}) {
      for (int width : {40, 100}) {
        for (double backward : {2.0, 0.3}) {
          std::istringstream lines(
              draw_text(picture_of(kind.name, 4, micro_batches, 2, 1, backward), {false, true, width}));
          for (std::string line; std::getline(lines, line);) {
            if (!line.starts_with("stage ")) continue;
            EXPECT_LE(columns_of(line), std::max<std::size_t>(42, width)) << line;
          }
        }
      }
    }
  }
}

TEST(PipelineDrawing, LeavesOutWhatRepeatsUnlessAsked) {
  auto picture = picture_of("gpipe", 2, 300, 1, 1, 2);
  EXPECT_THAT(draw_text(picture, {false, false, 80}), HasSubstr("more rows like these (--full shows them)"));
  EXPECT_THAT(draw_text(picture, {false, true, 80}), Not(HasSubstr("--full")));
}

TEST(PipelineDrawing, SaysWhereNoFormulaHolds) {
  auto formula = [](const Picture& picture) { return facts_of(picture)[2].second; };
  EXPECT_THAT(formula(picture_of("interleaved", 2, 3, 2, 1, 2)), HasSubstr("the stages do not divide"));
  EXPECT_THAT(formula(picture_of("zero-bubble", 4, 3, 1, 1, 2)), HasSubstr("fewer micro-batches than stages"));
  EXPECT_THAT(formula(picture_of("zero-bubble", 2, 3, 1, 1, 3)), HasSubstr("a backward of two forwards"));
}

TEST(PipelineDrawing, ThePageHoldsEveryComputation) {
  for (const PipelineKind& kind : kinds()) {
    auto page = draw_page(picture_of(kind.name, 3, 6, 2, 1, 2));
    EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
    std::size_t link = page.find("http");
    EXPECT_EQ(page.substr(link, 26), "http://www.w3.org/2000/svg");  // a name, and the only address
    EXPECT_EQ(page.find("http", link + 1), std::string::npos);
    std::size_t begin = page.find("id=\"data\">") + 10;
    json data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
    EXPECT_EQ(data["kinds"].size(), kinds().size());
    std::size_t per_batch = 2 + kind.splits_backward + !kind.synchronous;
    for (const auto& row : data["cells"]) EXPECT_EQ(row.size(), 6 * per_batch * (kind.in_chunks ? 2 : 1));
    for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(data["held"][stage].back()[1], 0);
  }
  EXPECT_THROW(draw_page(picture_of("gpipe", 100, 200, 1, 1, 2)), ConfigError);
}

}  // namespace
}  // namespace trireme::pipelines
