#include "trireme/ops/conv/padded/gathering.h"

#include <algorithm>
#include <atomic>

#include "trireme/ops/conv/padded/filters.h"
#include "trireme/ops/parallel.h"

namespace trireme::ops::padded {

using internal::kBf16Line;
using internal::kBf16Panel;
using internal::kBf16Strip;

namespace {

constexpr int64_t kLeastChannels = 16;
constexpr int64_t kImageBytes = 256 * 1024;  // of a block: stays in the second-level cache beside filters
constexpr int64_t kBlocks = 4;               // at least, for as many threads
constexpr int64_t kBlockPairs = kBf16Line * kBf16Strip;

}  // namespace

bool takes(const internal::Bf16Kernel& kernel, const ConvShape& shape, Pass pass) {
  if (pass == Pass::weights && !kernel.outruns_packing) return false;
  return shape.groups == 1 && (pass == Pass::data ? shape.out_channels : shape.in_channels) >= kLeastChannels;
}

Gathering::Gathering(const internal::Bf16Kernel& kernel, const ConvShape& shape, const Axis& down, const Axis& across,
                     bool turned)
    : kernel_(kernel),
      shape_(shape),
      down_(down),
      across_(across),
      turned_(turned),
      filters_(turned ? shape.in_channels : shape.out_channels),
      image_(down, across, shape.batch, turned ? shape.out_channels : shape.in_channels,
             kImageBytes / 64 / internal::bf16_lines(turned ? shape.out_channels : shape.in_channels), kBlocks),
      steps_(image_.steps()) {}

int64_t Gathering::filter_pairs() const {
  return internal::bf16_strips(filters_) * static_cast<int64_t>(steps_.size()) * kBlockPairs;
}

int64_t Gathering::workspace(int64_t slots) const {
  Arena arena;
  arena.take<uint32_t>(filter_pairs());
  for (int64_t slot = 0; slot < std::min(slots, std::max<int64_t>(image_.blocks(), 1)); ++slot) Slot(arena, *this);
  return arena.used();
}

double Gathering::bytes() const {
  const auto outputs = static_cast<double>(shape_.batch * down_.count * across_.count * filters_);
  const auto blocks = static_cast<double>(image_.blocks());
  // An image is written once and read from cache; filters are written, and read by each block.
  return 4 * (outputs + static_cast<double>(shape_.weight_size())) +
         blocks * 4 * static_cast<double>(image_.pairs()) * 2 + (1 + blocks) * 4 * static_cast<double>(filter_pairs());
}

double Gathering::products() const {
  const int64_t slots = (image_.most_slots() + kBf16Strip - 1) / kBf16Strip * kBf16Strip;
  return static_cast<double>(image_.blocks()) * static_cast<double>(slots) * 2 * static_cast<double>(filter_pairs());
}

void Gathering::run(const ConvTensors& tensors, std::span<std::byte> workspace) const {
  if (image_.blocks() == 0) return;
  Arena arena(workspace);
  auto* const filters = arena.take<uint32_t>(filter_pairs());
  pack_filters(*kernel_.packing, shape_, turned_, down_, across_, tensors.weight, filters);
  int64_t slots = 1;
  while (slots < std::min<int64_t>(threads(), image_.blocks()) &&
         this->workspace(slots + 1) <= static_cast<int64_t>(workspace.size())) {
    ++slots;
  }
  std::vector<Slot> own;
  for (int64_t slot = 0; slot < slots; ++slot) own.emplace_back(arena, *this);
  std::atomic<int64_t> next = 0;
  parallel(slots, [&](int64_t slot) {
    for (int64_t block = next++; block < image_.blocks(); block = next++) {
      run_block(tensors, filters, own[static_cast<std::size_t>(slot)], image_.block(block));
    }
  });
}

void Gathering::run_block(const ConvTensors& tensors, const uint32_t* filters, const Slot& slot,
                          const Block& block) const {
  image_.fill(*kernel_.packing, turned_ ? tensors.output : tensors.input, block, slot.image);
  float* const out = turned_ ? tensors.input : tensors.output;
  const int64_t height = turned_ ? shape_.height : shape_.out_height();
  const int64_t width = turned_ ? shape_.width : shape_.out_width();
  std::fill_n(slot.outs, image_.slots(block), nullptr);
  image_.each_output(block, [&](int64_t at, int64_t n, int64_t p, int64_t q) {
    const int64_t h = down_.out_first + p * down_.out_step, w = across_.out_first + q * across_.out_step;
    slot.outs[at] = out + ((n * height + h) * width + w) * filters_;
  });
  const float* const bias = turned_ ? nullptr : tensors.bias;
  const auto lines = static_cast<int64_t>(steps_.size());
  for (int64_t j = 0; j < filters_; j += kBf16Panel) {
    kernel_.multiply_strided({.call = {.a = slot.image,
                                       .rows = image_.slots(block),
                                       .lines = lines,
                                       .b = filters + j * lines * kBf16Line,
                                       .b_strip = lines * kBlockPairs,
                                       .c = slot.outs,
                                       .c_offset = j,
                                       .columns = std::min(kBf16Panel, filters_ - j),
                                       .bias = bias != nullptr ? bias + j : nullptr},
                              .a_row = image_.pixel(),
                              .a_steps = steps_.data()});
  }
}

}  // namespace trireme::ops::padded
