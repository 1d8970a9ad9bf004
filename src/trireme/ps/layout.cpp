#include "trireme/ps/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/error.h"
#include "trireme/ps/wire/wire.h"

namespace trireme::ps {
namespace {

constexpr std::uint64_t kGrain = 16;  // elements: a cache line
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 38;

}  // namespace

Layout::Layout(std::vector<Tensor> tensors, std::size_t shards) : tensors_(std::move(tensors)) {
  for (const Tensor& tensor : tensors_) {
    if (tensor.count > kMostElements - count_) {
      throw ConfigError(
          fmt::format("tensor {}: {} elements are more than a parameter server takes", tensor.name, tensor.count));
    }
    if (tensor.rows == 0 || tensor.count % tensor.rows != 0) {
      throw ConfigError(
          fmt::format("tensor {}: {} elements are not {} equal rows", tensor.name, tensor.count, tensor.rows));
    }
    count_ += tensor.count;
  }
  std::uint64_t grains = (count_ + kGrain - 1) / kGrain;
  shards = static_cast<std::size_t>(std::clamp<std::uint64_t>(shards, 1, std::max<std::uint64_t>(grains, 1)));
  for (std::size_t i = 0; i < shards; ++i) begins_.push_back(grains * i / shards * kGrain);
  begins_.push_back(count_);
}

const Tensor& Layout::find(std::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return tensor;
  }
  throw ConfigError(fmt::format("no tensor called {} was declared to the parameter server", name));
}

Segment Layout::tensor(std::string_view name) const {
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return {offset, tensor.count};
    offset += tensor.count;
  }
  find(name);
  return {};
}

std::string Layout::describe(std::size_t id) const {
  Segment range = shard(id);
  std::uint64_t begin = 0, end = range.offset + range.count;
  std::string text;
  int named = 0;
  for (const Tensor& tensor : tensors_) {
    std::uint64_t from = std::max(begin, range.offset), to = std::min(begin + tensor.count, end);
    if (from < to) {
      if (++named == 4) return text + ", …";
      text += fmt::format("{}{}[{}:{}]", text.empty() ? "" : ", ", tensor.name, from - begin, to - begin);
    }
    begin += tensor.count;
  }
  return text;
}

void Layout::pack(Packer& to) const {
  to.count(tensors_.size());
  for (const Tensor& tensor : tensors_) to.text(tensor.name).put(tensor.count).put(tensor.rows);
  to.count(shards());
}

Layout Layout::unpack(Unpacker& from) {
  std::vector<Tensor> tensors(from.count(20));
  for (Tensor& tensor : tensors) {
    tensor.name = from.text();
    tensor.count = from.get<std::uint64_t>();
    tensor.rows = from.get<std::uint64_t>();
  }
  auto shards = from.get<std::uint32_t>();
  if (shards > 1 << 20) throw ProtocolError("a layout of more shards than there can be");
  try {
    return shards == 0 ? Layout() : Layout(std::move(tensors), shards);
  } catch (const ConfigError& error) {
    throw ProtocolError(error.what());
  }
}

std::string difference(const std::vector<Tensor>& first, const std::vector<Tensor>& second) {
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i >= second.size()) return fmt::format("tensor {} is missing", first[i].name);
    if (i >= first.size()) return fmt::format("tensor {} is one too many", second[i].name);
    if (first[i].name != second[i].name) {
      return fmt::format("tensor {} stands where {} was declared", second[i].name, first[i].name);
    }
    if (first[i] != second[i]) {
      return fmt::format("tensor {} has {} elements in {} rows, but {} in {} were declared", first[i].name,
                         second[i].count, second[i].rows, first[i].count, first[i].rows);
    }
  }
  return {};
}

}  // namespace trireme::ps
