#include "trireme/sync/exchange/code_exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/sync/timed.h"

namespace trireme::sync {
namespace {

using compress::Aggregation;

template <typename Pick>
std::vector<Coded> those(std::span<const Coded> tensors, const Pick& pick) {
  std::vector<Coded> found;
  std::ranges::copy_if(tensors, std::back_inserter(found), pick);
  return found;
}

// The longest share of a tensor.
std::size_t longest_share(const Coded& tensor, int ranks) {
  return share_of(tensor.x.size(), tensor.codec->block(), ranks, 0).count;
}

// What a share's code takes in a message: as much as the longest one's.
std::size_t slot_of(const Coded& tensor, int ranks) { return tensor.codec->most_bytes(longest_share(tensor, ranks)); }
std::size_t merged_slot_of(const Coded& tensor, int ranks) {
  return tensor.again->most_bytes(longest_share(tensor, ranks));
}

}  // namespace

Share share_of(std::size_t count, std::size_t block, int ranks, int rank) {
  const std::size_t blocks = (count + block - 1) / block;
  const std::size_t each = (blocks + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks) * block;
  const std::size_t begin = std::min(count, each * static_cast<std::size_t>(rank));
  return {begin, std::min(count, begin + each) - begin};
}

void CodeExchange::exchange(std::span<const Coded> tensors) {
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    sum(those(tensors,
              [&](const Coded& one) {
                return one.codec->aggregation() == Aggregation::sum && one.codec->term_type() == type;
              }),
        type);
  }
  scatter(those(tensors, [](const Coded& one) { return one.codec->aggregation() == Aggregation::scatter; }));
  gather(those(tensors, [](const Coded& one) { return one.codec->aggregation() == Aggregation::gather; }));
}

std::byte* CodeExchange::room(Buffer& buffer, std::size_t bytes) {
  if (buffer.size < bytes) {
    buffer.memory = comm_.allocate_bytes(bytes);
    buffer.size = bytes;
  }
  return buffer.memory.get();
}

template <typename Encode>
std::size_t CodeExchange::encode(const Coded& tensor, std::span<float> x, const Encode& encode) {
  try {
    return encode(x);
  } catch (const compress::NotFinite& error) {
    if (bad_ == NotFinite::is_an_error) throw DataError(fmt::format("'{}': {}", *tensor.name, error.what()));
    std::ranges::fill(x, 0.0f);
    return encode(x);
  }
}

void CodeExchange::sum(std::span<const Coded> tensors, DType type) {
  int rounds = 0;
  for (const Coded& tensor : tensors) rounds = std::max(rounds, tensor.codec->rounds());
  for (int round = 0; round < rounds; ++round) {
    const auto in_round = those(tensors, [&](const Coded& one) { return round < one.codec->rounds(); });
    std::size_t terms = 0;
    for (const Coded& tensor : in_round) terms += tensor.codec->terms(round);
    std::byte* const memory = room(mine_, terms * size_of(type));
    auto place = memory;
    {
      Timed timed(encode_s_);
      for (const Coded& tensor : in_round) {
        encode(tensor, tensor.x, [&](std::span<float> x) {
          tensor.codec->give(round, x, place);
          return std::size_t{0};
        });
        place += tensor.codec->terms(round) * size_of(type);
      }
    }
    comm_.all_reduce(View(memory, terms, type), op_);
    Timed timed(decode_s_);
    place = memory;
    for (const Coded& tensor : in_round) {
      const bool last = round + 1 == tensor.codec->rounds();
      if (last && tensor.left) std::ranges::copy(tensor.x, tensor.left);
      tensor.codec->take(round, place, tensor.x);
      if (last && tensor.left) tensor.codec->leave({tensor.left, tensor.x.size()});
      place += tensor.codec->terms(round) * size_of(type);
    }
  }
}

void CodeExchange::scatter(std::span<const Coded> tensors) {
  if (tensors.empty()) return;
  const int ranks = comm_.size();
  std::size_t message = 0, merged_message = 0,
              longest = 0;  // of bytes to one rank, then to all; of elements in a share
  for (const Coded& tensor : tensors) {
    message += slot_of(tensor, ranks);
    merged_message += merged_slot_of(tensor, ranks);
    longest = std::max(longest, longest_share(tensor, ranks));
  }
  const std::size_t whole = message * static_cast<std::size_t>(ranks);
  const std::size_t merged_whole = merged_message * static_cast<std::size_t>(ranks);
  std::byte* const mine = room(mine_, std::max(whole, merged_message));
  std::byte* const all = room(all_, std::max(whole, merged_whole));
  {
    Timed timed(encode_s_);
    auto place = mine;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const Coded& tensor : tensors) {
        const auto share = share_of(tensor.x.size(), tensor.codec->block(), ranks, rank);
        encode(tensor, tensor.x.subspan(share.offset, share.count), [&](std::span<float> x) {
          return tensor.codec->encode(share.offset, x, place, tensor.left ? tensor.left + share.offset : nullptr);
        });
        place += slot_of(tensor, ranks);
      }
    }
  }
  comm_.all_to_all(ConstView(mine, whole, DType::u8), View(all, whole, DType::u8));
  {
    Timed timed(decode_s_);
    share_.resize(longest);
    std::vector<std::span<const std::byte>> codes(static_cast<std::size_t>(ranks));
    std::size_t at = 0;
    auto place = mine;
    for (const Coded& tensor : tensors) {
      const auto share = share_of(tensor.x.size(), tensor.codec->block(), ranks, comm_.rank());
      for (std::size_t rank = 0; rank < codes.size(); ++rank) {
        codes[rank] = {all + rank * message + at, tensor.codec->most_bytes(share.count)};
      }
      const std::span<float> merged(share_.data(), share.count);
      tensor.codec->merge(codes, factor(), merged);
      encode(tensor, merged, [&](std::span<float> x) { return tensor.again->encode(0, x, place, nullptr); });
      at += slot_of(tensor, ranks);
      place += merged_slot_of(tensor, ranks);
    }
  }
  comm_.all_gather(ConstView(mine, merged_message, DType::u8), View(all, merged_whole, DType::u8));
  Timed timed(decode_s_);
  auto place = all;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Coded& tensor : tensors) {
      const auto share = share_of(tensor.x.size(), tensor.codec->block(), ranks, rank);
      tensor.again->decode({place, tensor.again->most_bytes(share.count)}, tensor.x.subspan(share.offset, share.count));
      place += merged_slot_of(tensor, ranks);
    }
  }
}

void CodeExchange::gather(std::span<const Coded> tensors) {
  if (tensors.empty()) return;
  const auto ranks = static_cast<std::size_t>(comm_.size());
  std::size_t most = 0;
  for (const Coded& tensor : tensors) most += tensor.codec->most_bytes(tensor.x.size());
  std::byte* const mine = room(mine_, most);
  std::vector<CodeLength> lengths, of_all(tensors.size() * ranks);
  {
    Timed timed(encode_s_);
    auto place = mine;
    for (const Coded& tensor : tensors) {
      const auto bytes =
          encode(tensor, tensor.x, [&](std::span<float> x) { return tensor.codec->encode(0, x, place, tensor.left); });
      place += bytes;
      lengths.push_back(static_cast<CodeLength>(bytes));
    }
  }
  comm_.all_gather(lengths, of_all);
  auto length = [&](std::size_t rank, std::size_t k) {
    const std::int64_t said = of_all[rank * tensors.size() + k];
    const auto longest = static_cast<std::int64_t>(tensors[k].codec->most_bytes(tensors[k].x.size()));
    if (said < 0 || said > longest) {
      throw ProtocolError(fmt::format("rank {} sends a code of {} bytes for '{}'", rank, said, *tensors[k].name));
    }
    return static_cast<std::size_t>(said);
  };
  std::size_t message = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::size_t whole = 0;
    for (std::size_t k = 0; k < tensors.size(); ++k) whole += length(rank, k);
    message = std::max(message, whole);
  }
  std::byte* const all = room(all_, message * ranks);
  comm_.all_gather(ConstView(mine, message, DType::u8), View(all, message * ranks, DType::u8));
  Timed timed(decode_s_);
  for (const Coded& tensor : tensors) std::ranges::fill(tensor.x, 0.0f);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::byte* place = all + rank * message;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      tensors[k].codec->add({place, length(rank, k)}, factor(), tensors[k].x);
      place += length(rank, k);
    }
  }
}

}  // namespace trireme::sync
