#include "trireme/ops/matmul/draw/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "trireme/base/error.h"
#include "trireme/ops/instruction_set.h"
#include "trireme/ops/matmul/matmul.h"

namespace trireme::ops {
namespace {

using Kind = MatmulEvent::Kind;

constexpr std::size_t kMostLines = 12;  // of a table

std::string span_text(int64_t first, int64_t count) {
  return count == 1 ? fmt::format("{}", first) : fmt::format("{}…{}", first, first + count - 1);
}

std::vector<MatmulEvent> tiles_of(const MatmulTrace& trace) {
  std::vector<MatmulEvent> tiles;
  for (const MatmulEvent& it : trace.events) {
    if (it.kind == Kind::tile) tiles.push_back(it);
  }
  return tiles;
}

// Which of `count` things a table shows: all, or the first ones and the last. Nothing stands for those left out.
std::vector<std::optional<std::size_t>> shown_of(std::size_t count) {
  std::vector<std::optional<std::size_t>> shown;
  for (std::size_t i = 0; i < count; ++i) {
    if (count <= kMostLines || i + 2 < kMostLines || i + 1 == count) shown.emplace_back(i);
    if (count > kMostLines && i + 2 == kMostLines) shown.emplace_back();
  }
  return shown;
}

// The first kernel call: which vectors of c its registers hold.
DrawnStep register_step(const MatmulTrace& trace, const MatmulEvent& tile) {
  const int64_t vectors = tile.lanes / trace.lanes;
  DrawnGrid grid{fmt::format("the first tile's sums: {} registers", tile.rows * vectors), {}};
  for (int64_t i = 0; i < tile.rows; ++i) {
    auto& row = grid.rows.emplace_back();
    auto& hues = grid.hues.emplace_back();
    for (int64_t v = 0; v < vectors; ++v) {
      row.push_back(fmt::format("c[{}][{}]", tile.i + i, span_text(tile.j + v * trace.lanes, trace.lanes)));
      hues.push_back(drawn_hue(v));
    }
  }
  return {
      fmt::format("With {} a vector holds {} numbers. A call of the kernel computes a tile of c: up to {} rows of a "
                  "panel of {} columns, or up to {} rows of two panels. Its sums stay in registers; for each l "
                  "it loads {} vector{} of b and takes one number of a after the other to all lanes.",
                  instruction_set(), trace.lanes, trace.rows, trace.panel, trace.wide_rows, vectors,
                  vectors == 1 ? "" : "s"),
      {std::move(grid)}};
}

// The order in which the tiles of c are computed for the first part of k.
DrawnStep order_step(const MatmulTrace& trace, const std::vector<MatmulEvent>& tiles) {
  std::set<int64_t> starts_i, starts_j;
  std::map<std::pair<int64_t, int64_t>, std::pair<std::size_t, MatmulEvent>> places;
  for (const MatmulEvent& it : tiles) {
    if (it.l > 0) continue;
    starts_i.insert(it.i);
    starts_j.insert(it.j);
    places.try_emplace({it.i, it.j}, places.size() + 1, it);
  }
  const std::vector<int64_t> down(starts_i.begin(), starts_i.end()), across(starts_j.begin(), starts_j.end());
  std::map<std::pair<int64_t, int64_t>, int64_t> shapes;  // rows and columns: which hue
  DrawnGrid grid{"rows × columns of c: the tiles in their order", {{"rows"}}, {{-1}}};
  const auto lines = shown_of(down.size()), columns = shown_of(across.size());
  const auto end = [](const std::vector<int64_t>& all, std::size_t i, int64_t last) {
    return i + 1 < all.size() ? all[i + 1] : last;
  };
  for (const auto& j : columns) {
    grid.rows[0].push_back(j ? span_text(across[*j], end(across, *j, trace.n) - across[*j]) : "…");
    grid.hues[0].push_back(-1);
  }
  for (const auto& i : lines) {
    auto& row = grid.rows.emplace_back();
    auto& hues = grid.hues.emplace_back(1, -1);
    row.push_back(i ? span_text(down[*i], end(down, *i, trace.m) - down[*i]) : "…");
    for (const auto& j : columns) {
      const auto found = i && j ? places.find({down[*i], across[*j]}) : places.end();
      row.push_back(found == places.end() ? "…" : std::to_string(found->second.first));
      const auto shape = found == places.end()
                             ? shapes.end()
                             : shapes
                                   .try_emplace({found->second.second.rows, found->second.second.columns},
                                                static_cast<int64_t>(shapes.size()))
                                   .first;
      hues.push_back(shape == shapes.end() ? -1 : drawn_hue(shape->second));
    }
  }
  std::map<std::pair<int64_t, int64_t>, int64_t> kinds;
  for (const auto& [place, it] : places) ++kinds[{it.second.rows, it.second.columns}];
  DrawnGrid sizes{"tiles", {{"rows", "columns", "how many"}}, {}, true};
  for (const auto& [size, count] : kinds) {
    sizes.rows.push_back({std::to_string(size.first), std::to_string(size.second), std::to_string(count)});
  }
  return {
      fmt::format("c is cut into {} tiles as equal as can be. A panel of b stays in the first cache while the tiles "
                  "of all rows of the block pass by.",
                  places.size()),
      {std::move(grid), std::move(sizes)}};
}

// The first events, of equal ones next to each other the whole.
DrawnStep events_step(const MatmulTrace& trace) {
  struct Line {
    MatmulEvent event;
    int64_t count = 1;
  };
  std::vector<Line> lines;
  for (const MatmulEvent& it : trace.events) {
    if (!lines.empty() && it.kind == lines.back().event.kind && it.l == lines.back().event.l) {
      MatmulEvent& last = lines.back().event;
      if (it.kind == Kind::pack_a && it.i == last.i + last.rows) {
        last.rows += it.rows, ++lines.back().count;
        continue;
      }
      if (it.kind == Kind::pack_b && it.j == last.j + last.columns) {
        last.columns += it.columns, ++lines.back().count;
        continue;
      }
      if (it.kind == Kind::tile && it.j == last.j && it.columns == last.columns && it.i == last.i + last.rows) {
        last.rows += it.rows, ++lines.back().count;
        continue;
      }
    }
    lines.push_back({it});
  }
  DrawnGrid grid{"in order", {{"what", "rows", "columns", "l"}}, {std::vector<int>(4, -1)}, true};
  for (const auto& at : shown_of(lines.size())) {
    if (!at) {
      grid.rows.push_back({"…", "", "", ""});
      grid.hues.emplace_back(4, -1);
      continue;
    }
    const auto& [it, count] = lines[*at];
    const std::string what = it.kind == Kind::pack_a ? fmt::format("pack a, tile by tile: {}", count)
                             : it.kind == Kind::pack_b
                                 ? "pack b, panel by panel"
                                 : fmt::format("{} tile{}{}{}", count, count == 1 ? "" : "s",
                                               it.in_place ? ", a as it lies" : "", it.add ? ", added to c" : "");
    grid.rows.push_back({what, it.kind == Kind::pack_b ? "" : span_text(it.i, it.rows),
                         it.kind == Kind::pack_a ? "" : span_text(it.j, it.columns), span_text(it.l, it.depth)});
    grid.hues.emplace_back(4, drawn_hue(static_cast<int64_t>(it.kind)));
  }
  return {
      "What runs, on one thread: parts of k, for each the rows of a, then panels of b, for each the tiles. Packed "
      "numbers lie in the order in which the kernel reads them.",
      {std::move(grid)}};
}

DrawnStep counts_step(const MatmulTrace& trace) {
  const MatmulCounts counts = count_events(trace);
  const double definition = find_matmul_algorithm("tiled")->cost(trace.m, trace.n, trace.k).multiplications;
  DrawnGrid grid{"counted", {}, {}, true};
  const auto add = [&](std::string what, std::string number) {
    grid.rows.push_back({std::move(what), std::move(number)});
  };
  add("multiplications", fmt::format("{:.0f}", counts.multiplications));
  add("calls of the kernel", std::to_string(counts.tiles));
  add("lanes with work", fmt::format("{:.1f} %", 100 * counts.multiplications / counts.slots));
  add("numbers of a packed", std::to_string(counts.packed_a));
  add("numbers of b packed", std::to_string(counts.packed_b));
  DrawnStep step{
      fmt::format("By {:.0f} multiplications; the definition takes {:.0f}", counts.multiplications, definition),
      {std::move(grid)}};
  constexpr double kCompared = 0x1p26;
  if (definition > kCompared) {
    step.text += ".";
    return step;
  }
  std::vector<float> right(trace.c.size());
  matmul_algorithms().front()->run({.m = trace.m,
                                    .n = trace.n,
                                    .k = trace.k,
                                    .a = {trace.a.data(), trace.k},
                                    .b = {trace.b.data(), trace.n},
                                    .c = right.data(),
                                    .c_stride = trace.n});
  double off = 0;
  for (std::size_t i = 0; i < right.size(); ++i)
    off = std::max(off, std::abs(static_cast<double>(right[i]) - static_cast<double>(trace.c[i])));
  step.text += fmt::format(" and differs by {:.2g} at most.", off);
  const int64_t rows = std::min<int64_t>(trace.m, 4), columns = std::min<int64_t>(trace.n, 4);
  step.grids.push_back(grid_of_numbers("c, its corner", rows, columns, trace.c.data(), trace.n));
  return step;
}

}  // namespace

MatmulCounts count_events(const MatmulTrace& trace) {
  MatmulCounts counts;
  for (const MatmulEvent& it : trace.events) {
    if (it.kind == Kind::pack_a) {
      counts.packed_a += it.rows * it.depth;
    } else if (it.kind == Kind::pack_b) {
      counts.packed_b += it.columns * it.depth;
    } else {
      ++counts.tiles;
      counts.multiplications += static_cast<double>(it.rows * it.columns * it.depth);
      counts.slots += static_cast<double>(it.rows * it.lanes * it.depth);
    }
  }
  return counts;
}

OpDrawing draw_matmul(int64_t m, int64_t n, int64_t k) {
  if (m < 1 || n < 2 || k < 1) {
    throw ConfigError(
        fmt::format("a product of {}x{}x{} cannot be drawn: rows and depth are from 1 on, columns from 2 on", m, n, k));
  }
  if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kMostDrawnProducts) {
    throw ConfigError(
        fmt::format("a product of {}x{}x{} cannot be drawn: it has more than 2^32 multiplications", m, n, k));
  }
  const MatmulTrace trace = trace_matmul(m, n, k);
  const auto tiles = tiles_of(trace);
  return {fmt::format("matrix product: {} x {} by {} x {}, {}", m, k, k, n, find_matmul_algorithm("tiled")->what()),
          "Recorded while the product ran on one thread, with the kernels of this CPU.",
          {register_step(trace, tiles.front()), order_step(trace, tiles), events_step(trace), counts_step(trace)}};
}

}  // namespace trireme::ops
