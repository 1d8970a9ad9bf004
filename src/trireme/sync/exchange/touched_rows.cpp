#include "trireme/sync/exchange/touched_rows.h"

#include <algorithm>
#include <cstring>

namespace trireme::sync {

TouchedRows::TouchedRows(const std::vector<ps::Tensor>& tensors, std::span<const std::string> tables) {
  std::uint64_t offset = 0, widest = 0;
  for (const auto& tensor : tensors) {
    Part part{offset, tensor.count};
    if (std::ranges::find(tables, tensor.name) != tables.end()) {
      part.rows = tensor.rows;
      part.table = report_.tables.size();
      report_.tables.push_back({tensor.name, tensor.rows});
      widest = std::max(widest, tensor.count / tensor.rows);
    }
    parts_.push_back(part);
    offset += tensor.count;
  }
  zeros_.resize(widest);
}

void TouchedRows::add(std::uint64_t offset, std::uint64_t count) {
  if (!segments_.empty() && segments_.back().offset + segments_.back().count == offset) {
    segments_.back().count += count;
  } else if (count > 0) {
    segments_.push_back({offset, count});
  }
}

std::size_t TouchedRows::pack(std::span<const float> gradient, float* packed) {
  segments_.clear();
  for (const auto& part : parts_) {
    if (part.table == kWhole) {
      add(part.offset, part.count);
      continue;
    }
    const auto width = part.count / part.rows;
    for (std::uint64_t row = 0; row < part.rows; ++row) {
      const auto at = part.offset + row * width;
      if (std::memcmp(gradient.data() + at, zeros_.data(), width * sizeof(float)) == 0) continue;
      add(at, width);
      ++report_.tables[part.table].pushed;
    }
  }
  ++report_.pushes;
  report_.bytes_before += gradient.size_bytes();
  float* to = packed;
  for (const auto& segment : segments_) to = std::copy_n(gradient.data() + segment.offset, segment.count, to);
  return static_cast<std::size_t>(to - packed);
}

}  // namespace trireme::sync
