#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trireme/base/error.h"
#include "trireme/ops/conv/draw/steps.h"
#include "trireme/ops/conv/shape_text.h"

namespace trireme::ops {
namespace conv_draw_test {

using testing::HasSubstr;

TEST(ConvDrawing, EveryAlgorithmShowsTheDefinitionsOutputs) {
  for (const ConvAlgorithm* algorithm : conv_algorithms()) {
    const ConvShape shape{.batch = 1, .in_channels = 1, .height = 5, .width = 4, .out_channels = 1, .kernel = {3, 3}};
    if (!algorithm->takes(shape, Pass::forward)) continue;  // this CPU
    const OpDrawing drawing = draw_conv(*algorithm, {5, 4}, {3, 3});
    ASSERT_GE(drawing.steps.size(), 3u) << algorithm->name();
    const auto& outputs = drawing.steps.back().grids.front().rows;
    EXPECT_EQ(outputs, draw_conv(*conv_algorithms().front(), {5, 4}, {3, 3}).steps.back().grids.front().rows)
        << algorithm->name();
    EXPECT_THAT(drawing_page(drawing), HasSubstr(nlohmann::json(outputs[0]).dump()));
  }
}

TEST(ConvDrawing, TheNotesExample) {
  const std::string text = drawing_text(draw_conv(*find_conv_algorithm("im2col"), {3, 3}, {2, 2}));
  for (const char* part : {"145.06 108.06", "108.06 121.06", "3 9 2 8", "8 1 4 8", "16 multiplications"}) {
    EXPECT_THAT(text, HasSubstr(part)) << text;
  }
}

TEST(ConvDrawing, WinogradCountsFewerMultiplications) {
  const std::string text = drawing_text(draw_conv(*find_conv_algorithm("winograd2"), {4, 4}, {3, 3}));
  EXPECT_THAT(text, HasSubstr("by 16 multiplications; the definition takes 36"));
  EXPECT_THAT(text, HasSubstr("1/2 -1/2  1/2"));
  EXPECT_THROW(draw_conv(*find_conv_algorithm("winograd2"), {4, 4}, {2, 2}), ConfigError);
  EXPECT_THROW(draw_conv(*find_conv_algorithm("direct"), {40, 4}, {2, 2}), ConfigError);
  EXPECT_THROW(draw_conv(*find_conv_algorithm("direct"), {2, 2}, {3, 3}), ConfigError);
}

TEST(ConvShapeText, IsReadAsItIsWritten) {
  for (const char* text :
       {"16x64x32x32,128x3x3", "1x3x5x7,6x2x3,stride=2,padding=1x0,dilation=1x2,groups=3", "0x1x1x1,1x1x1"}) {
    EXPECT_EQ(text_of(parse_conv_shape(text)), text);
  }
  for (const char* text :
       {"", "1", "1x2x3x4", "1x2x3x4,5x6", "1x2x3x4,5x1x1,way=2", "1x2x3x4,5x1x1,stride=0", "1x2x3x4,5x9x9",
        "1x2x3xa,5x1x1", "1x2x3x4,5x1x1,stride", "9999999x1x1x1,1x1x1", "1048576x1048576x1x1,1x1x1"}) {
    EXPECT_THROW(parse_conv_shape(text), ConfigError) << text;
  }
}

}  // namespace conv_draw_test
}  // namespace trireme::ops
