#include "trireme/ops/draw/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trireme/base/text/text.h"
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

std::vector<std::string> lines_of(const DrawnGrid& grid) {
  std::vector<std::size_t> widths;
  for (const auto& row : grid.rows) {
    widths.resize(std::max(widths.size(), row.size()), 1);
    for (std::size_t j = 0; j < row.size(); ++j) widths[j] = std::max(widths[j], width_of(row[j]));
  }
  if (!grid.table && !widths.empty()) std::ranges::fill(widths, std::ranges::max(widths));
  std::vector<std::string> lines{grid.label};
  for (const auto& row : grid.rows) {
    std::string line;
    for (std::size_t j = 0; j < row.size(); ++j) line += (j == 0 ? "" : " ") + right_aligned(row[j], widths[j]);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string drawn_number(double x) {
  const double rounded = std::round(x * 1e4) / 1e4;
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

// Neighbours far apart: the golden angle.
int drawn_hue(int64_t which) { return static_cast<int>((210 + which * 137) % 360); }

DrawnGrid grid_of_numbers(std::string label, int64_t rows, int64_t columns, const float* x, int64_t stride) {
  DrawnGrid grid{std::move(label), {}};
  for (int64_t i = 0; i < rows; ++i) {
    auto& row = grid.rows.emplace_back();
    for (int64_t j = 0; j < columns; ++j) row.push_back(drawn_number(static_cast<double>(x[i * stride + j])));
  }
  return grid;
}

std::string drawing_text(const OpDrawing& drawing) {
  std::string text = drawing.title + "\n";
  for (std::size_t number = 0; number < drawing.steps.size(); ++number) {
    const DrawnStep& step = drawing.steps[number];
    text += fmt::format("\n{}. {}\n", number + 1, step.text);
    std::vector<std::vector<std::string>> columns;
    std::size_t height = 0;
    for (const DrawnGrid& grid : step.grids) height = std::max(height, columns.emplace_back(lines_of(grid)).size());
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

std::string drawing_page(const OpDrawing& drawing) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const DrawnStep& step : drawing.steps) {
    nlohmann::ordered_json grids = nlohmann::ordered_json::array();
    for (const DrawnGrid& grid : step.grids) {
      nlohmann::ordered_json it{{"label", grid.label}, {"rows", grid.rows}};
      if (!grid.hues.empty()) it["hues"] = grid.hues;
      grids.push_back(std::move(it));
    }
    steps.push_back({{"text", step.text}, {"grids", std::move(grids)}});
  }
  const nlohmann::ordered_json data{{"summary", drawing.summary}, {"steps", std::move(steps)}};
  return pages::render(pages::View::steps, drawing.title, data.dump());
}

}  // namespace trireme::ops
