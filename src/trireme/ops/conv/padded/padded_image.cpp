#include "trireme/ops/conv/padded/padded_image.h"

#include <algorithm>

namespace trireme::ops::padded {
namespace {

using internal::kBf16Line;

constexpr int64_t kLeastSlots = 128;  // of blocks that need not be so small

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

// Pixels of a plane's row before its source begins, and before it ends.
int64_t before(const Axis& axis, int64_t phase, int64_t most) {
  return std::clamp<int64_t>(ceil_div(-axis.first - phase, axis.step), 0, most);
}
int64_t before_end(const Axis& axis, int64_t phase, int64_t most) {
  return std::clamp<int64_t>(ceil_div(axis.source - axis.first - phase, axis.step), 0, most);
}

}  // namespace

PlaneAxis::PlaneAxis(const Axis& axis) : pitch(std::max<int64_t>(axis.count, 1)) {
  for (const int64_t offset : axis.offsets) {
    const int64_t phase = offset % axis.step;
    const auto known = std::find(phases.begin(), phases.end(), phase);
    places.push_back({known - phases.begin(), offset / axis.step});
    if (known == phases.end()) phases.push_back(phase);
    shift = std::max(shift, offset / axis.step);
  }
  for (std::size_t it = 0; it < phases.size(); ++it) {
    int64_t reach = 0;
    for (const Place& place : places) {
      if (place.phase == static_cast<int64_t>(it)) reach = std::max(reach, axis.count + place.shift);
    }
    // What lies behind the pitch is zero here, and in the zeros of the next row.
    pitch = std::max({pitch, before_end(axis, phases[it], reach), reach - before(axis, phases[it], reach)});
  }
}

PaddedImage::PaddedImage(const Axis& down, const Axis& across, int64_t batch, int64_t channels, int64_t most,
                         int64_t blocks)
    : down_(down), across_(across), lines_down_(down), columns_(across), batch_(batch), channels_(channels) {
  if (batch == 0 || down.count <= 0 || across.count <= 0) return;
  const int64_t picture = lines_down_.pitch * columns_.pitch;
  const int64_t fits = most / std::max<int64_t>(1, planes());
  const int64_t slots = std::min(fits, std::max(kLeastSlots, batch * picture / blocks));
  if (slots >= picture) {
    most_rows_ = down.count;
    const int64_t needed = ceil_div(batch, std::min(batch, slots / picture));
    for (blocks_ = 1; blocks_ < needed;) blocks_ *= 2;  // the same share for each of two threads, or of four
    most_pictures_ = ceil_div(batch, std::min(blocks_, batch));
    blocks_ = ceil_div(batch, most_pictures_);
  } else {
    most_rows_ = std::clamp<int64_t>(slots / columns_.pitch, 1, down.count);
    most_rows_ = ceil_div(down.count, ceil_div(down.count, most_rows_));
    blocks_ = batch * ceil_div(down.count, most_rows_);
  }
  rows_ = most_pictures_ > 1 ? lines_down_.pitch : most_rows_ + lines_down_.shift;
  const int64_t tiles = ceil_div(most_slots(), 2 * kBf16Line) * 2 * kBf16Line;
  plane_ =
      std::max(most_pictures_ * rows_ * columns_.pitch, tiles + lines_down_.shift * columns_.pitch + columns_.shift);
}

Block PaddedImage::block(int64_t number) const {
  if (most_rows_ == down_.count) {
    const int64_t picture = number * most_pictures_;
    return {picture, std::min(most_pictures_, batch_ - picture), 0, down_.count};
  }
  const int64_t parts = ceil_div(down_.count, most_rows_), row = number % parts * most_rows_;
  return {number / parts, 1, row, std::min(most_rows_, down_.count - row)};
}

std::vector<int64_t> PaddedImage::places() const {
  std::vector<int64_t> all;
  for (const PlaneAxis::Place& r : lines_down_.places) {
    for (const PlaneAxis::Place& s : columns_.places) {
      const int64_t plane = r.phase * static_cast<int64_t>(columns_.phases.size()) + s.phase;
      all.push_back(plane * plane_ + r.shift * columns_.pitch + s.shift);
    }
  }
  return all;
}

std::vector<int64_t> PaddedImage::steps() const {
  std::vector<int64_t> all;
  for (const int64_t place : places()) {
    for (int64_t line = 0; line < lines(); ++line) all.push_back(place * pixel() + line * kBf16Line);
  }
  return all;
}

template <class Body>
void PaddedImage::each_row(const float* source, const Block& block, const Body& body) const {
  int64_t at = 0;
  for (const int64_t r : lines_down_.phases) {
    for (const int64_t s : columns_.phases) {
      const int64_t end = at + plane_;
      for (int64_t it = 0; it < block.pictures * rows_; ++it, at += columns_.pitch) {
        const int64_t n = block.picture + it / rows_;
        const int64_t h = down_.first + (block.row + it % rows_) * down_.step + r;
        const bool inside = h >= 0 && h < down_.source;
        body(inside ? source + (n * down_.source + h) * across_.source * channels_ : nullptr, s, at, columns_.pitch);
      }
      body(nullptr, s, at, end - at);
      at = end;
    }
  }
}

void PaddedImage::fill(const internal::Bf16Packing& packing, const float* source, const Block& block,
                       uint32_t* image) const {
  each_row(source, block, [&](const float* row, int64_t phase, int64_t at, int64_t pixels) {
    uint32_t* const to = image + at * pixel();
    if (row != nullptr) return fill_row(packing, row, phase, to);
    std::fill_n(to, pixels * pixel(), 0u);
  });
}

void PaddedImage::point(const float* source, const Block& block, const float* zeros, const float** pixels) const {
  each_row(source, block, [&](const float* row, int64_t phase, int64_t at, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t w = across_.first + phase + i * across_.step;
      pixels[at + i] = row != nullptr && w >= 0 && w < across_.source ? row + w * channels_ : zeros;
    }
  });
}

void PaddedImage::fill_row(const internal::Bf16Packing& packing, const float* row, int64_t phase, uint32_t* to) const {
  const int64_t begin = before(across_, phase, columns_.pitch);
  const int64_t end = std::max(begin, before_end(across_, phase, columns_.pitch));
  std::fill_n(to, begin * pixel(), 0u);
  std::fill_n(to + end * pixel(), (columns_.pitch - end) * pixel(), 0u);
  if (begin == end) return;
  const bool joined = across_.step == 1 && channels_ == 2 * pixel();
  const int64_t pixels = joined ? end - begin : 1, start = 0;  // turned at a time
  to += begin * pixel();
  for (int64_t i = begin; i < end; i += pixels, to += pixels * pixel()) {
    const float* const from = row + (across_.first + phase + i * across_.step) * channels_;
    packing.tile({&from, &start, 1, pixels * channels_}, 1, pixels * lines(), to);
  }
}

}  // namespace trireme::ops::padded
