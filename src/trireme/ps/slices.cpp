#include "trireme/ps/slices.h"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::ps {
namespace {

constexpr std::uint64_t kMost = std::uint64_t{1} << 28;  // elements of a slice: lengths of messages have 32 bits

std::optional<compress::Choice> for_pulls(const compress::Choice& choice) {
  if (choice.kind->error != compress::CodecKind::Error::its_own && !choice.kind->takes_momentum) return choice;
  const auto& kind = *choice.kind;
  if (kind.memoryless.empty()) return std::nullopt;
  return compress::Choice::parse(fmt::format("{}:{}", kind.memoryless, choice.values.text(kind.settings.front().name)));
}

// The slices of one tensor's elements [from, to), which begin at `begin` of a shard.
class Cutter {
 public:
  Cutter(const Tensor& tensor, int number, const compress::Rules& rules)
      : tensor_(tensor),
        width_(tensor.rows == 0 ? tensor.count : tensor.count / tensor.rows),
        choice_(rules.of({tensor.name, tensor.count, tensor.rows, number})) {}

  void cut(std::uint64_t from, std::uint64_t to, std::uint64_t begin, std::vector<Slice>& slices) const {
    if (choice_.kind->matrices_only) {
      const auto first = std::min(to, (from + width_ - 1) / width_ * width_),
                 end = std::max(first, to / width_ * width_);
      add(first - from, begin, false, slices);
      add_all(end - first, begin + (first - from), kMost / width_ * width_, slices);
      add(to - end, begin + (end - from), false, slices);
    } else {
      add_all(to - from, begin, kMost, slices);
    }
  }

 private:
  void add_all(std::uint64_t count, std::uint64_t begin, std::uint64_t most, std::vector<Slice>& slices) const {
    if (most == 0) return add(count, begin, false, slices);
    for (; count > 0; count -= std::min(count, most), begin += most) add(std::min(count, most), begin, true, slices);
  }
  void add(std::uint64_t count, std::uint64_t begin, bool whole, std::vector<Slice>& slices) const {
    if (count == 0) return;
    Slice slice{{tensor_.name, count, width_ > 0 && count % width_ == 0 ? count / width_ : 1, 0}, begin, {}, {}};
    // A codec that takes the momentum takes it of all.
    if (choice_.kind->takes_momentum || (whole && count >= compress::Rules::kSmall && !choice_.none())) {
      slice.push = choice_;
      slice.pull = for_pulls(choice_);
      if (slice.pull && slice.pull->none()) slice.pull.reset();
    }
    slices.push_back(std::move(slice));
  }

  const Tensor& tensor_;
  const std::uint64_t width_;  // of a row
  const compress::Choice choice_;
};

}  // namespace

std::vector<std::vector<Slice>> cut(const Layout& layout, const compress::Rules& rules) {
  std::vector<std::vector<Slice>> shards(layout.shards());
  std::uint64_t begin = 0;  // of the tensor
  int number = 0;
  for (const Tensor& tensor : layout.tensors()) {
    const Cutter cutter(tensor, number++, rules);
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      const Segment range = layout.shard(shard);
      const auto from = std::max(begin, range.offset), to = std::min(begin + tensor.count, range.offset + range.count);
      if (from < to) cutter.cut(from - begin, to - begin, from - range.offset, shards[shard]);
    }
    begin += tensor.count;
  }
  int next = 0;
  for (auto& slices : shards) {
    for (Slice& slice : slices) slice.as.number = next++;
  }
  return shards;
}

}  // namespace trireme::ps
