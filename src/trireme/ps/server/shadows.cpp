#include "trireme/ps/server/shadows.h"

#include <algorithm>

#include "trireme/base/error.h"

namespace trireme::ps {

void Shadows::send_whole(OfShard& of, const Shard& shard, std::uint64_t number) {
  auto state = std::make_shared<State>(State{number, Floats(shard.count())});
  std::ranges::copy(shard.weights(), state->values.span().begin());
  of.last = {0, number, std::as_bytes(state->values.span()), state};
  of.made = std::move(state);
}

void Shadows::send_difference(OfShard& of, const Shard& shard, std::shared_ptr<State> from, std::uint64_t number) {
  const std::uint64_t base = from->number;
  // Where nobody else has it, what was its memory becomes the new state's.
  auto state = from;
  if (from.use_count() > 2) {
    state = std::make_shared<State>(State{number, Floats(shard.count())});
    std::ranges::copy(from->values.span(), state->values.span().begin());
  }
  std::shared_ptr<std::byte[]> bytes(new std::byte[of.coder->most_bytes()]);
  const auto length = of.coder->encode(shard.weights(), state->values.span(), bytes.get());
  state->number = number;
  of.last = {base, number, {bytes.get(), length}, bytes};
  of.made = std::move(state);
}

Shadows::Answer Shadows::answer(ServerId self, WorkerId worker, const Shard& shard, std::uint64_t has,
                                const std::function<Coder()>& coder) {
  OfShard& of = shards_[shard.id()];
  auto& known = of.states[worker];
  const bool agree = known && has != 0 && known->number == has;
  const bool again = of.made && of.version == shard.version() && of.last.base == (agree ? has : 0);
  if (!again) {
    of.last = {};
    of.made.reset();
    of.version = shard.version();
    const std::uint64_t number = (std::uint64_t{self} + 1) << 40 | ++next_;
    if (!of.coder) of.coder.emplace(coder());
    if (agree) {
      try {
        auto from = std::exchange(known, nullptr);
        send_difference(of, shard, std::move(from), number);
      } catch (const DataError&) {
        send_whole(of, shard, number);  // weights that are no numbers; it is the worker's to notice
      }
    } else {
      known.reset();
      send_whole(of, shard, number);
    }
  }
  known = of.made;
  return of.last;
}

void Shadows::keep_only(const View& view, ServerId self) {
  std::erase_if(shards_, [&](auto& entry) { return view.head(entry.first) != self; });
  for (auto& [id, of] : shards_) {
    std::erase_if(of.states, [&](auto& entry) { return !view.has_worker(entry.first); });
  }
}

}  // namespace trireme::ps
