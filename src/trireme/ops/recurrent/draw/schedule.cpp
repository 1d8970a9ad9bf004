#include <fmt/format.h>

#include <map>

#include "trireme/ops/recurrent/draw/steps.h"

namespace trireme::ops {

DrawnGrid grid_of_schedule(const RecurrentSchedule& schedule) {
  const std::size_t columns = schedule.waves.size() + 1;
  DrawnGrid grid{schedule.name, {{"wave"}}, {std::vector<int>(columns, -1)}};
  grid.table = true;
  std::map<std::pair<int64_t, int64_t>, std::size_t> lines;  // by layer and first row of the batch
  for (const auto& wave : schedule.waves) {
    for (const RecurrentTask& task : wave) lines[{task.layer, task.row}] = 0;
  }
  for (auto& [of, line] : lines) {
    line = grid.rows.size();
    grid.rows.emplace_back(columns);
    grid.hues.emplace_back(columns, -1);
  }
  for (std::size_t wave = 0; wave < schedule.waves.size(); ++wave) {
    grid.rows[0].push_back(std::to_string(wave));
    for (const RecurrentTask& task : schedule.waves[wave]) {
      const std::size_t line = lines.at({task.layer, task.row});
      grid.rows[line][0] = fmt::format("layer {}, rows {}…{}", task.layer, task.row, task.row_end - 1);
      grid.rows[line][wave + 1] = fmt::format("{}…{}", task.first, task.last - 1);
      grid.hues[line][wave + 1] = drawn_hue(task.layer);
    }
  }
  for (std::size_t line = 1; line < grid.rows.size(); ++line) {
    for (std::string& cell : grid.rows[line]) {
      if (cell.empty()) cell = "·";
    }
  }
  return grid;
}

}  // namespace trireme::ops
