// What `trireme explain` shows of an operator: steps with tables of numbers or words, as text or as a page.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme::ops {

struct DrawnGrid {
  std::string label;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::vector<int>> hues = {};  // of cells, on the page: an angle of the colour circle; below 0: none
  bool table = false;                       // words: each column of the text as wide as it needs
};

struct DrawnStep {
  std::string text;
  std::vector<DrawnGrid> grids;  // side by side
};

struct OpDrawing {
  std::string title;
  std::string summary;
  std::vector<DrawnStep> steps;
};

std::string drawing_text(const OpDrawing& drawing);
std::string drawing_page(const OpDrawing& drawing);  // HTML

// At most four places behind the point.
std::string drawn_number(double x);
// The hue of the which-th of things to be told apart.
int drawn_hue(int64_t which);
// Row by row.
DrawnGrid grid_of_numbers(std::string label, int64_t rows, int64_t columns, const float* x, int64_t stride);

}  // namespace trireme::ops
