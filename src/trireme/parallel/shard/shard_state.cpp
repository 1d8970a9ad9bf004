// Whole tensors of pieces and pieces of whole tensors: what checkpoints are made of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <set>

#include "trireme/base/error.h"
#include "trireme/parallel/shard/shard_impl.h"

namespace trireme::parallel {
namespace {

torch::Tensor memory_of(const torch::Tensor& dense) { return dense.as_strided({dense.numel()}, {1}); }

// The elements of a tensor of this parameter's shape, in the order in which the parameter lies in memory.
torch::Tensor laid_out(const torch::Tensor& tensor, const torch::Tensor& parameter) {
  auto copy = torch::empty_strided(parameter.sizes(), parameter.strides(), tensor.options());
  copy.copy_(tensor.detach());
  return memory_of(copy);
}

torch::Tensor part_of(const torch::Tensor& row, const FlatParameters::Range& range) {
  return row.narrow(0, static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.count()));
}

View raw_view(const torch::Tensor& dense) { return {dense.data_ptr(), dense.nbytes(), DType::u8}; }

// One worker's memory reaches the others, or rank 0.
void move(Communicator& comm, const torch::Tensor& memory, int owner, Sharded::At at) {
  if (at == Sharded::At::all_workers) {
    comm.broadcast(raw_view(memory), owner);
  } else if (owner != 0 && comm.rank() == owner) {
    comm.send(raw_view(memory), 0);
  } else if (owner != 0 && comm.rank() == 0) {
    comm.recv(raw_view(memory), owner);
  }
}

bool receives(Communicator& comm, Sharded::At at) { return at == Sharded::At::all_workers || comm.rank() == 0; }

// A tensor of the parameter's shape from the pieces of all workers that have one; zeros for the others. `mine` is this
// worker's piece. Undefined where it does not arrive.
torch::Tensor assemble(Communicator& comm, const FlatParameters& flat, const FlatPart& part, const torch::Tensor& mine,
                       torch::ScalarType type, const std::vector<bool>& has, Sharded::At at) {
  torch::Tensor whole;
  if (receives(comm, at)) {
    whole = torch::empty_strided(part.parameter.sizes(), part.parameter.strides(), type).zero_();
  }
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto range = flat.owned(part, rank);
    if (range.count() == 0 || !has[rank]) continue;
    torch::Tensor here = mine.defined() ? mine.to(torch::kCPU).contiguous() : mine;
    if (whole.defined()) {
      here = part_of(memory_of(whole), range);
      if (rank == comm.rank()) here.copy_(mine);
    }
    if (here.defined()) move(comm, here, rank, at);
  }
  return whole;
}

// What a worker has of a quantity.
struct Entry {
  std::string name;
  bool piece = false;  // to be put together
  int type = 0;
  std::vector<std::int64_t> sizes;
};

// One line each: name, piece or not, type, sizes.
std::string to_text(const std::vector<Entry>& entries) {
  std::string text;
  for (const auto& entry : entries) {
    text += fmt::format("{}\t{:d}\t{}\t{}\n", entry.name, entry.piece, entry.type, fmt::join(entry.sizes, " "));
  }
  return text;
}

std::int64_t next_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  TRIREME_CHECK(error == std::errc());
  text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
  return number;
}

std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    Entry entry{std::string(line.substr(0, line.find('\t'))), false, 0, {}};
    line.remove_prefix(entry.name.size() + 1);
    entry.piece = next_number(line) != 0;
    entry.type = static_cast<int>(next_number(line));
    while (!line.empty()) entry.sizes.push_back(next_number(line));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// What every worker has, by rank.
std::vector<std::vector<Entry>> everyones(Communicator& comm, const std::vector<Entry>& mine) {
  const auto text = to_text(mine);
  std::vector<std::int64_t> length{static_cast<std::int64_t>(text.size())}, lengths(comm.size());
  comm.all_gather(length, lengths);
  const auto longest = static_cast<std::size_t>(*std::ranges::max_element(lengths));
  std::vector<std::uint8_t> here(std::max<std::size_t>(1, longest)), all(here.size() * comm.size());
  std::memcpy(here.data(), text.data(), text.size());
  comm.all_gather(here, all);
  std::vector<std::vector<Entry>> found;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto* begin = reinterpret_cast<const char*>(all.data()) + rank * here.size();
    found.push_back(entries_of({begin, static_cast<std::size_t>(lengths[rank])}));
  }
  return found;
}

std::string shape_of(const torch::Tensor& tensor) { return fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")); }

}  // namespace

Sharded::Impl::Place Sharded::Impl::place_of(const std::string& parameter) const {
  const auto found = places.find(parameter);
  return found == places.end() ? Place{} : found->second;
}

// The longest name that fits: quantities may have dots, and so may parameters.
Sharded::Impl::Place Sharded::Impl::place_of_quantity(const std::string& name) const {
  for (auto dot = name.rfind('.'); dot != std::string::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    if (auto place = place_of(name.substr(0, dot)); place.unit) return place;
  }
  return {};
}

// ---- Weights ----

nn::Named Sharded::whole_weights(At at) {
  torch::NoGradGuard no_grad;
  auto& comm = impl_->comm;
  const std::vector<bool> everyone(comm.size(), true);
  std::map<const FlatPart*, torch::Tensor> done;
  nn::Named whole;
  for (const auto& [name, place] : impl_->names) {
    const auto& flat = place.unit->flat;
    if (!done.contains(place.part)) {
      torch::Tensor mine;
      if (flat.owned(*place.part, comm.rank()).count() > 0) mine = flat.piece(flat.shard(), *place.part);
      done[place.part] = assemble(comm, flat, *place.part, mine, flat.type(), everyone, at);
    }
    if (done[place.part].defined()) whole.emplace_back(name, done[place.part]);
  }
  return whole;
}

void Sharded::load_weights(const nn::Named& whole) {
  torch::NoGradGuard no_grad;
  std::map<const FlatPart*, torch::Tensor> given;
  for (const auto& [name, tensor] : whole) {
    const auto place = impl_->place_of(name);
    if (!place.unit) continue;
    if (tensor.sizes() != place.part->parameter.sizes()) {
      throw DataError(
          fmt::format("weights: {} is {}, must be {}", name, shape_of(tensor), shape_of(place.part->parameter)));
    }
    given.emplace(place.part, tensor);
  }
  for (const auto& [name, place] : impl_->names) {
    if (!given.contains(place.part)) throw DataError(fmt::format("weights: {} is missing", name));
  }
  for (auto& unit : impl_->units) {
    unit->flat.outdate();
    for (const auto& part : unit->flat.parts()) {
      const auto own = unit->flat.owned(part, impl_->comm.rank());
      if (own.count() == 0) continue;
      unit->flat.piece(unit->flat.shard(), part).copy_(part_of(laid_out(given.at(&part), part.parameter), own));
    }
  }
  if (!impl_->sharded_weights()) {
    for (auto& unit : impl_->units) unit->flat.need();
  }
  impl_->foresees = true;
}

// ---- Optimizer state ----

nn::Named Sharded::whole_state(const nn::Named& of_shards, At at) {
  torch::NoGradGuard no_grad;
  auto& comm = impl_->comm;
  std::vector<Entry> mine;
  for (const auto& [name, tensor] : of_shards) {
    const auto place = impl_->place_of_quantity(name);
    const auto own = place.unit ? place.unit->flat.owned(*place.part, comm.rank()) : FlatParameters::Range{};
    const bool piece = place.unit && tensor.dim() == 1 && tensor.is_floating_point() &&
                       static_cast<std::size_t>(tensor.numel()) == own.count();
    mine.push_back({name, piece, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  const auto all = everyones(comm, mine);

  std::map<std::string, torch::Tensor> here(of_shards.begin(), of_shards.end());
  std::set<std::string> seen;
  nn::Named whole;
  for (int first = 0; first < comm.size(); ++first) {
    for (const auto& entry : all[first]) {
      if (!seen.insert(entry.name).second) continue;
      const auto type = static_cast<torch::ScalarType>(entry.type);
      auto found = here.find(entry.name);
      torch::Tensor tensor = found == here.end() ? torch::Tensor() : found->second;
      if (entry.piece) {
        const auto place = impl_->place_of_quantity(entry.name);
        std::vector<bool> has(comm.size());
        for (int rank = 0; rank < comm.size(); ++rank) {
          has[rank] = std::ranges::any_of(all[rank], [&](const Entry& one) { return one.name == entry.name; });
        }
        tensor = assemble(comm, place.unit->flat, *place.part, tensor, type, has, at);
      } else {
        auto memory = comm.rank() == first ? tensor.detach().to(torch::kCPU).clone(at::MemoryFormat::Contiguous)
                                           : torch::empty(entry.sizes, type);
        move(comm, memory, first, at);
        tensor = receives(comm, at) ? memory : torch::Tensor();
      }
      if (tensor.defined()) whole.emplace_back(entry.name, tensor);
    }
  }
  return whole;
}

nn::Named Sharded::shard_state(const nn::Named& whole) const {
  torch::NoGradGuard no_grad;
  nn::Named mine;
  for (const auto& [name, tensor] : whole) {
    const auto place = impl_->place_of_quantity(name);
    if (!place.unit) continue;
    const auto own = place.unit->flat.owned(*place.part, impl_->comm.rank());
    if (own.count() == 0) continue;
    const bool piece = tensor.is_floating_point() && tensor.sizes() == place.part->parameter.sizes();
    auto own_part = piece ? part_of(laid_out(tensor, place.part->parameter), own) : tensor;
    mine.emplace_back(name, own_part.clone().to(piece ? place.unit->flat.device() : tensor.device()));
  }
  return mine;
}

}  // namespace trireme::parallel
