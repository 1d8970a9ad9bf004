// From the parameters of segments to units of flat memory, and from those to the pieces that this worker steps.
#include <algorithm>
#include <chrono>
#include <exception>
#include <tuple>

#include "trireme/base/error.h"
#include "trireme/grad/replicas.h"
#include "trireme/grad/spare_core.h"
#include "trireme/parallel/shard/shard_impl.h"

namespace trireme::parallel {
namespace {

const ShardOptions& checked(const ShardOptions& options) {
  if (options.what == ShardKind::none) {
    throw ConfigError("shard: none leaves nothing to do; use data_parallel(), or optimizer, gradients or parameters");
  }
  if (options.op != Op::sum && options.op != Op::avg) throw ConfigError("shard: gradients are added up or averaged");
  return options;
}

}  // namespace

Sharded::Impl::Unit::Unit(Exchange& exchange, std::vector<FlatPart> parts, bool learning,
                          std::vector<std::size_t> used_by, const ShardOptions& options)
    : segments(std::move(used_by)), flat(exchange, std::move(parts), learning, options.what != ShardKind::parameters) {
  if (learning) gradients.emplace(exchange, flat, options.op, options.what == ShardKind::optimizer);
}

Sharded::Impl::Impl(std::vector<nn::Named> given, Communicator& data, const ShardOptions& wanted)
    : comm(data),
      options(checked(wanted)),
      exchange(comm, options.turn ? *options.turn : grad::turn_for(comm, options.threads)),
      order(given.size()),
      of_segment(given.size()) {
  build(given);
  find_pieces();
  notes.assign(kUsed + learning.size(), 0.f);
}

Sharded::Impl::~Impl() {
  const auto patience = std::chrono::seconds(std::uncaught_exceptions() > 0 ? 0 : 5);
  for (auto& unit : units) {
    for (Work* work : {unit->flat.pending(), unit->gradients ? unit->gradients->pending() : nullptr}) {
      if (!work) continue;
      try {
        if (work->wait_for(patience)) continue;
        comm.abort("sharding: a worker left in the middle of a step");
        work->wait();
      } catch (const std::exception&) {  // it has ended, and was said where it was waited for
      }
    }
  }
}

void Sharded::Impl::build(const std::vector<nn::Named>& given) {
  struct Found {
    FlatPart part;
    std::vector<std::size_t> segments;
  };
  std::vector<Found> found;  // each tensor once
  std::map<const void*, std::size_t> number;
  std::vector<std::pair<std::string, std::size_t>> all;
  std::vector<grad::Parameter> outline;
  for (std::size_t segment = 0; segment < given.size(); ++segment) {
    for (const auto& [name, tensor] : given[segment]) {
      outline.push_back({name, tensor});
      grad::element_type(outline.back());
      auto [at, fresh] = number.emplace(tensor.unsafeGetTensorImpl(), found.size());
      if (fresh) found.push_back({{name, {}, tensor}, {}});
      auto& entry = found[at->second];
      if (name != entry.part.name && !std::ranges::count(entry.part.other_names, name)) {
        entry.part.other_names.push_back(name);
      }
      if (entry.segments.empty() || entry.segments.back() != segment) entry.segments.push_back(segment);
      if (std::ranges::none_of(all, [&, n = name](const auto& one) { return one.first == n; })) {
        all.emplace_back(name, at->second);
      }
    }
  }
  grad::check_same_outline(comm, outline);
  std::vector<grad::Parameter> tensors;
  for (const auto& entry : found) tensors.push_back({entry.part.name, entry.part.parameter});
  grad::broadcast_all(comm, tensors, 0);

  auto kind = [&](const Found& entry) {
    const auto& [name, others, tensor, offset, count] = entry.part;
    return std::tuple(entry.segments, tensor.scalar_type(), tensor.device().str(), tensor.requires_grad(),
                      options.apart.contains(name) ? name : std::string());
  };
  std::vector<bool> taken(found.size());
  for (std::size_t first = 0; first < found.size(); ++first) {
    if (taken[first]) continue;
    std::vector<FlatPart> parts;
    for (std::size_t k = first; k < found.size(); ++k) {
      if (kind(found[k]) != kind(found[first])) continue;
      taken[k] = true;
      parts.push_back(found[k].part);
    }
    const bool learns = found[first].part.parameter.requires_grad();
    units.push_back(std::make_unique<Unit>(exchange, std::move(parts), learns, found[first].segments, options));
    auto& unit = *units.back();
    unit.first_part = learning.size();
    for (std::size_t segment : unit.segments) of_segment[segment].push_back(&unit);
    for (const auto& part : unit.flat.parts()) {
      if (learns) learning.push_back(part.name);
      places[part.name] = {&unit, &part};
      for (const auto& other : part.other_names) places[other] = {&unit, &part};
    }
  }
  for (const auto& [name, k] : all) names.emplace_back(name, places.at(name));
}

void Sharded::Impl::find_pieces() {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const auto& flat = units[u]->flat;
    if (!flat.learning()) continue;
    for (std::size_t k = 0; k < flat.parts().size(); ++k) {
      const auto& part = flat.parts()[k];
      if (flat.owned(part, comm.rank()).count() == 0) continue;
      pieces.push_back({u, k});
      shards.emplace_back(part.name, flat.piece(flat.shard(), part));
    }
  }
}

}  // namespace trireme::parallel
