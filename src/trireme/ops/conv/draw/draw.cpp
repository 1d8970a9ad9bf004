#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/text/text.h"
#include "trireme/ops/conv/draw/steps.h"
#include "trireme/pages/page.h"

namespace trireme::ops {
namespace {

// Characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, width_of(text)), ' ') + text;
}

std::vector<std::string> lines_of(const ConvGrid& grid) {
  std::size_t width = 1;
  for (const auto& row : grid.rows) {
    for (const std::string& cell : row) width = std::max(width, width_of(cell));
  }
  std::vector<std::string> lines{grid.label};
  for (const auto& row : grid.rows) {
    std::string line;
    for (const std::string& cell : row) line += (line.empty() ? "" : " ") + right_aligned(cell, width);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string conv_text(const ConvDrawing& drawing) {
  std::string text = drawing.title + "\n";
  for (std::size_t number = 0; number < drawing.steps.size(); ++number) {
    const ConvStep& step = drawing.steps[number];
    text += fmt::format("\n{}. {}\n", number + 1, step.text);
    std::vector<std::vector<std::string>> columns;
    std::size_t height = 0;
    for (const ConvGrid& grid : step.grids) height = std::max(height, columns.emplace_back(lines_of(grid)).size());
    for (std::size_t line = 0; line < height; ++line) {
      std::string all;
      for (const auto& column : columns) {
        std::size_t width = 0;
        for (const std::string& each : column) width = std::max(width, width_of(each));
        const std::string part = line < column.size() ? column[line] : "";
        all += "    " + part + std::string(width - width_of(part), ' ');
      }
      text += all.substr(0, all.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

std::string conv_page(const ConvDrawing& drawing) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const ConvStep& step : drawing.steps) {
    nlohmann::ordered_json grids = nlohmann::ordered_json::array();
    for (const ConvGrid& grid : step.grids) grids.push_back({{"label", grid.label}, {"rows", grid.rows}});
    steps.push_back({{"text", step.text}, {"grids", std::move(grids)}});
  }
  const nlohmann::ordered_json data{{"summary", "Its steps on one picture of one channel, from the code that runs."},
                                    {"steps", std::move(steps)}};
  return pages::render(pages::View::convolution, drawing.title, data.dump());
}

}  // namespace trireme::ops
