#include "trireme/ops/conv/im2col/window.h"

#include <algorithm>
#include <cstring>

namespace trireme::ops::im2col {
namespace {

// Runs are joined only up to here, so that what a part of a product reads of the weights stays in cache.
constexpr int64_t kLongestRun = 768;  // elements

}  // namespace

Window::Window(Axis down, Axis across, int64_t batch, int64_t channels, int64_t groups, int64_t pixels_of_block)
    : down_(std::move(down)), across_(std::move(across)), batch_(batch), channels_(channels) {
  copies_ = down_.reads_outside() || across_.reads_outside();
  const int64_t row = std::max<int64_t>(across_.count, 1), picture = std::max<int64_t>(down_.count * row, 1);
  most_rows_ = std::min((pixels_of_block + row - 1) / row, std::max<int64_t>(down_.count, 1));
  if (most_rows_ == down_.count)
    most_pictures_ = std::clamp<int64_t>(pixels_of_block / picture, 1, std::max<int64_t>(batch, 1));
  if (down_.count * across_.count > 0) {
    blocks_ = most_rows_ == down_.count ? (batch + most_pictures_ - 1) / most_pictures_
                                        : batch * ((down_.count + most_rows_ - 1) / most_rows_);
  }
  const auto places = static_cast<int64_t>(across_.offsets.size());
  const int64_t line = (copies_ ? across_.reach(across_.count) : across_.source) * channels;
  const bool joined =
      groups == 1 && places > 0 && across_.offsets.back() == places - 1 && places * channels <= kLongestRun;
  taps_.run = joined ? places * channels : channels / groups;
  for (const int64_t r : down_.offsets) {
    for (std::size_t s = 0; s < across_.offsets.size(); ++s) {
      if (!joined || s == 0) taps_.offsets.push_back(r * line + across_.offsets[s] * channels);
    }
  }
}

OutputBlock Window::block(int64_t number) const {
  if (most_rows_ == down_.count) {
    const int64_t picture = number * most_pictures_;
    return {.picture = picture, .pictures = std::min(most_pictures_, batch_ - picture), .rows = down_.count};
  }
  const int64_t parts = (down_.count + most_rows_ - 1) / most_rows_, row = number % parts * most_rows_;
  return {.picture = number / parts, .row = row, .rows = std::min(most_rows_, down_.count - row)};
}

int64_t Window::copied() const {
  return copies_ ? most_pictures_ * down_.reach(most_rows_) * across_.reach(across_.count) * channels_ : 0;
}

void Window::copy_rows(const float* source, const OutputBlock& block, float* copy) const {
  const int64_t rows = down_.reach(block.rows), line = across_.reach(across_.count);
  const int64_t left = std::clamp<int64_t>(-across_.first, 0, line);
  const int64_t inside = std::clamp<int64_t>(across_.source - std::max<int64_t>(across_.first, 0), 0, line - left);
  const auto zeros = [&](float* at, int64_t pixels) { return std::fill_n(at, pixels * channels_, 0.0f); };
  for (int64_t picture = block.picture; picture < block.picture + block.pictures; ++picture) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t h = down_.first + block.row * down_.step + i;
      if (h < 0 || h >= down_.source) {
        copy = zeros(copy, line);
        continue;
      }
      copy = zeros(copy, left);
      if (inside > 0) {
        const int64_t w = std::max<int64_t>(across_.first, 0);
        std::memcpy(copy, source + ((picture * down_.source + h) * across_.source + w) * channels_,
                    static_cast<std::size_t>(inside * channels_) * sizeof(float));
        copy += inside * channels_;
      }
      copy = zeros(copy, line - left - inside);
    }
  }
}

void Window::prepare(const float* source, const OutputBlock& block, float* copy, const float** pixels) const {
  if (taps_.offsets.empty()) {
    std::fill_n(pixels, this->pixels(block), source);
    return;
  }
  if (copies_) copy_rows(source, block, copy);
  const int64_t line = (copies_ ? across_.reach(across_.count) : across_.source) * channels_;
  for (int64_t n = 0; n < block.pictures; ++n) {
    const float* const picture =
        copies_ ? copy + n * down_.reach(block.rows) * line
                : source + ((block.picture + n) * down_.source + down_.first + block.row * down_.step) * line +
                      across_.first * channels_;
    for (int64_t p = 0; p < block.rows; ++p) {
      for (int64_t q = 0; q < across_.count; ++q) {
        *pixels++ = picture + p * down_.step * line + q * across_.step * channels_;
      }
    }
  }
}

void point_outputs(const Window& window, const OutputBlock& block, float* out, int64_t height, int64_t width,
                   int64_t channels, float** outs) {
  const Axis &down = window.down(), &across = window.across();
  for (int64_t n = block.picture; n < block.picture + block.pictures; ++n) {
    for (int64_t p = block.row; p < block.row + block.rows; ++p) {
      float* const line = out + (n * height + down.out_first + p * down.out_step) * width * channels;
      for (int64_t q = 0; q < across.count; ++q) *outs++ = line + (across.out_first + q * across.out_step) * channels;
    }
  }
}

}  // namespace trireme::ops::im2col
