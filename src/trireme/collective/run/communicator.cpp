#include "trireme/collective/run/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trireme/base/cores.h"
#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/collective/run/communicator_impl.h"

namespace trireme {

Options options_from_environment() {
  Options options;
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != 0 ? value : nullptr;
  };
  if (auto* value = set("TRIREME_TIMEOUT")) options.timeout_s = parse_number(value, "TRIREME_TIMEOUT");
  if (auto* value = set("TRIREME_ALGORITHM")) options.algorithm = value;
  if (auto* value = set("TRIREME_DETERMINISTIC")) {
    options.deterministic = parse_integer(value, "TRIREME_DETERMINISTIC", 0, 1) == 1;
  }
  if (auto* value = set("TRIREME_LANES")) {
    options.lanes = static_cast<int>(parse_integer(value, "TRIREME_LANES", 1, kMostLanes));
  }
  return options;
}

// ---- Work ----

void Work::wait() { wait_for(Duration::max()); }

bool Work::wait_for(std::chrono::nanoseconds longest) {
  if (!state_) return true;
  return state_->lane ? state_->lane->wait(ticket_, longest) : state_->messenger->wait(state_->message, longest);
}

bool Work::done() const {
  if (!state_) return true;
  return state_->lane ? state_->lane->done(ticket_) : state_->messenger->done(state_->message);
}

Work::Times Work::times() const {
  if (!state_ || !state_->lane) return {};
  auto [begin, end] = state_->lane->times(ticket_);
  return {begin, end};
}

// ---- A group and its lanes ----

namespace {

void check_options(const Options& options) {
  if (!(options.timeout_s > 0 && options.timeout_s < 1e9)) {
    throw ConfigError(fmt::format("timeout: {} is not a number of seconds above 0", options.timeout_s));
  }
  if (options.lanes < 1 || options.lanes > kMostLanes) {
    throw ConfigError(fmt::format("lanes: {} is not from 1 to {}", options.lanes, kMostLanes));
  }
}

CallQueue::Settings settings_for(const Options& options, const net::Transport& transport, int spins) {
  // With more ranks than cores whoever spins keeps the one it waits for from running. A lane's own thread sleeps at
  // once: the cores belong to what the caller does meanwhile, and who yields beside it is let on a time slice later.
  const bool spare = transport.ranks_on_host() <= usable_cores();
  return {.timeout = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.timeout_s)),
          .inline_ = spare ? net::Patience{spins, 100} : net::Patience{0, 200},
          .background = {0, 0}};
}

}  // namespace

Communicator::Impl::Impl(std::shared_ptr<WorldEnd> end, std::vector<int> group, std::uint64_t id, const Options& wanted,
                         const std::optional<Tuning>& tuning)
    : world(std::move(end)), members(std::move(group)), options(wanted) {
  check_options(options);
  auto& transport = *world->transport;
  rank_ = static_cast<int>(std::find(members.begin(), members.end(), transport.rank()) - members.begin());
  const auto own_tuning = tuning ? tuning : load_tuning(transport.name());  // spinning is each rank's own affair
  settings = settings_for(options, transport, own_tuning.value_or(default_tuning(transport.name())).spins);
  auto deadline = Deadline::in(settings.timeout);
  auto open = [&](std::uint64_t lane) { return transport.open(id << 8 | lane, members, deadline); };
  for (int i = 0; i < options.lanes; ++i) {
    auto lane = std::make_shared<CallQueue>(transport, open(i), settings);
    lanes.push_back(std::make_shared<Work::State>(Work::State{world, std::move(lane), nullptr, nullptr}));
  }
  in_turn = lanes.size();
  messenger = std::make_shared<Messenger>(transport, open(kMostLanes), settings);
  const bool shared = lanes[0]->lane->channel().board() != nullptr;
  selector.emplace(default_tuning(transport.name()), size(), shared, options.deterministic);
  selector.emplace(tuning ? *tuning : agree_on_tuning(), size(), shared, options.deterministic);
  bool known = options.algorithm == "auto";
  for (Collective what : kCollectives) {
    for (const Algorithm* algorithm : algorithms_for(what)) {
      if (algorithm->name != options.algorithm) continue;
      selector->prefer(what, options.algorithm);
      known = true;
    }
  }
  if (!known) find_algorithm(Collective::all_reduce, options.algorithm);  // throws, listing the names
}

// Rank 0 says what to decide from, so that all ranks decide the same.
Tuning Communicator::Impl::agree_on_tuning() {
  std::string text;
  if (rank() == 0) {
    auto tuning = load_tuning(world->transport->name());
    text = to_json(tuning ? *tuning : selector->tuning()).dump();
  }
  auto& lane = *lanes[0]->lane;
  auto broadcast = [&](void* data, std::size_t count, DType type) {
    Request request{.what = Collective::broadcast, .dtype = type, .count = count, .input = data, .output = data};
    selector->choose(request);
    lane.run(request);
  };
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(&length, 1, DType::i64);
  text.resize(static_cast<std::size_t>(length));
  broadcast(text.data(), text.size(), DType::u8);
  return tuning_from_json(nlohmann::json::parse(text));
}

Communicator join_world(std::unique_ptr<net::Transport> transport, const Options& options) {
  std::vector<int> everyone(transport->size());
  std::iota(everyone.begin(), everyone.end(), 0);
  auto world = std::make_shared<WorldEnd>();
  world->transport = std::move(transport);
  return Communicator(
      std::make_unique<Communicator::Impl>(std::move(world), std::move(everyone), 0, options, std::nullopt));
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return impl_->rank(); }
int Communicator::size() const { return impl_->size(); }
std::string_view Communicator::transport() const { return impl_->world->transport->name(); }
void Communicator::abort(std::string_view why) { impl_->world->transport->abort(why); }

void Communicator::set_algorithm(std::string_view collective, std::string_view algorithm) {
  impl_->selector->prefer(parse_collective(collective), algorithm);
}

std::uint64_t Communicator::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const auto& state : impl_->lanes) bytes += state->lane->bytes_sent();
  return bytes;
}

std::shared_ptr<std::byte[]> Communicator::allocate_bytes(std::size_t bytes) {
  auto world = impl_->world;
  return {world->transport->heap().allocate(bytes),
          [world](std::byte* memory) { world->transport->heap().release(memory); }};
}

std::optional<Communicator> Communicator::split(int color, int key) {
  auto& world = *impl_->world;
  // Each rank offers an id; a group takes its first member's.
  std::vector<std::int64_t> mine{color, key, world.next_group.fetch_add(1)};
  std::vector<std::int64_t> all(mine.size() * size());
  all_gather(mine, all);
  if (color < 0) return std::nullopt;
  std::vector<int> group;
  for (int member = 0; member < size(); ++member) {
    if (all[3 * member] == color) group.push_back(member);
  }
  std::stable_sort(group.begin(), group.end(), [&](int a, int b) { return all[3 * a + 1] < all[3 * b + 1]; });
  const auto leader = static_cast<std::uint64_t>(impl_->members[group[0]]);
  const auto id = (leader + 1) << 32 | static_cast<std::uint64_t>(all[3 * group[0] + 2]);
  for (int& member : group) member = impl_->members[member];
  return Communicator(
      std::make_unique<Impl>(impl_->world, std::move(group), id, impl_->options, impl_->selector->tuning()));
}

// ---- Calls ----

void Communicator::issue(const Request& request) {
  Request chosen = request;
  impl_->selector->choose(chosen);
  impl_->lanes[impl_->calls++ % impl_->in_turn]->lane->run(chosen);
}

Work Communicator::start(const Request& request) {
  Request chosen = request;
  impl_->selector->choose(chosen);
  Work work;
  work.state_ = impl_->lanes[impl_->calls++ % impl_->in_turn];
  work.ticket_ = work.state_->lane->start(chosen);
  return work;
}

namespace {

void check_peer(int peer, int size, const char* what) {
  if (peer < 0 || peer >= size) {
    throw ConfigError(fmt::format("{} {} is not a rank of this group of {}", what, peer, size));
  }
}

}  // namespace

Work Communicator::send_async(ConstView data, int to, std::uint64_t tag) {
  check_peer(to, size(), "send to");
  const auto* bytes = static_cast<const std::byte*>(data.data);
  auto message = impl_->messenger->send(to, {bytes, data.count * size_of(data.dtype)}, tag);
  Work work;
  work.state_ = std::make_shared<Work::State>(Work::State{impl_->world, nullptr, impl_->messenger, std::move(message)});
  return work;
}

Work Communicator::recv_async(View data, int from, std::uint64_t tag) {
  check_peer(from, size(), "receive from");
  auto* bytes = static_cast<std::byte*>(data.data);
  auto message = impl_->messenger->recv(from, {bytes, data.count * size_of(data.dtype)}, tag);
  Work work;
  work.state_ = std::make_shared<Work::State>(Work::State{impl_->world, nullptr, impl_->messenger, std::move(message)});
  return work;
}

void Communicator::send(ConstView data, int to, std::uint64_t tag) { send_async(data, to, tag).wait(); }
void Communicator::recv(View data, int from, std::uint64_t tag) { recv_async(data, from, tag).wait(); }

}  // namespace trireme
