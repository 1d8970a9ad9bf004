#include "trireme/ps/client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"
#include "trireme/ps/client/client_impl.h"
#include "trireme/ps/wire/endpoint.h"

namespace trireme::ps {

ClientOptions client_options_from_environment() {
  ClientOptions options;
  const char* at = std::getenv("TRIREME_PS");
  if (!at || !*at) {
    throw ConfigError(
        "TRIREME_PS is not set: start this with `trireme train --strategy ps-…`, or set it to the "
        "coordinator's endpoint");
  }
  options.at = at;
  options.key = net::key_from_environment();
  if (const char* rank = std::getenv("RANK")) {
    options.rank = static_cast<int>(parse_integer(rank, "RANK", 0, 1 << 20));
  }
  return options;
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;

WorkerId Client::id() const { return impl_->id(); }
void Client::declare(const JobSpec& spec, std::span<const float> initial, Deadline deadline, const ServerState& state) {
  impl_->declare(spec, initial, deadline, state);
}

ServerState Client::pull_state(Deadline deadline) {
  ServerState state;
  const auto update = impl_->view().update;
  const auto parts = static_cast<int>(quantities_of(update).size());
  for (int part = 0; part < parts; ++part) {
    state.parts.emplace_back(count());
    Impl::Operation operation;
    operation.kind = Impl::Operation::Kind::pull;
    operation.into = state.parts.back();
    operation.state = part;
    state.updates = impl_->wait(impl_->submit(std::move(operation)), deadline).outcome.version;
  }
  return state;
}

std::uint64_t Client::count() const {
  MutexLock lock(impl_->mutex_);
  return impl_->view_.layout.count();
}
std::uint64_t Client::clock() const {
  MutexLock lock(impl_->mutex_);
  return impl_->clock_;
}
bool Client::joined_late() const {
  MutexLock lock(impl_->mutex_);
  return impl_->late_;
}
std::size_t Client::live_workers() const {
  MutexLock lock(impl_->mutex_);
  return impl_->view_.workers.size();
}
WorkerId Client::first_worker() const {
  MutexLock lock(impl_->mutex_);
  WorkerId first = kNobody;
  for (const auto& worker : impl_->view_.workers) {
    if (worker.initial) first = std::min(first, worker.id);
  }
  return first;
}
std::string Client::stopped() const {
  MutexLock lock(impl_->mutex_);
  return impl_->view_.stop;
}
std::uint64_t Client::bytes_moved() const {
  MutexLock lock(impl_->mutex_);
  return impl_->bytes_moved_;
}

std::optional<CompressionReport> Client::compression() const {
  const auto codes = impl_->codes();
  return codes ? std::optional(codes->report()) : std::nullopt;
}

std::span<float> Client::allocate(std::size_t count) { return {impl_->memory_.allocate(count), count}; }
void Client::release(std::span<float> memory) noexcept { impl_->memory_.release(memory.data()); }

Ticket Client::push(std::span<const float> gradient, double lr) {
  impl_->check_size(gradient.size());
  Impl::Operation operation;
  operation.lr = lr;
  operation.from = gradient;
  return {impl_->submit_push(std::move(operation)), 0};
}

Ticket Client::pull(std::span<float> into) {
  impl_->check_size(into.size());
  Impl::Operation operation;
  operation.kind = Impl::Operation::Kind::pull;
  operation.into = into;
  operation.exact = !impl_->codes();
  return {0, impl_->submit(std::move(operation))};
}

Ticket Client::pull_exact(std::span<float> into) {
  impl_->check_size(into.size());
  Impl::Operation operation;
  operation.kind = Impl::Operation::Kind::pull;
  operation.into = into;
  return {0, impl_->submit(std::move(operation))};
}

Ticket Client::push_pull(std::span<const float> gradient, double lr, std::span<float> into) {
  impl_->check_size(gradient.size());
  impl_->check_size(into.size());
  // A push may have to be sent again after the weights have come.
  if (gradient.data() < into.data() + into.size() && into.data() < gradient.data() + gradient.size()) {
    throw ConfigError("push_pull needs the gradient and the weights in different memory");
  }
  Impl::Operation push, pull;
  push.lr = lr;
  push.from = gradient;
  push.patient = true;
  pull.kind = Impl::Operation::Kind::pull;
  pull.into = into;
  pull.exact = !impl_->codes();
  std::uint64_t first = impl_->submit_push(std::move(push));
  return {first, impl_->submit(std::move(pull))};
}

Ticket Client::push_segments(std::span<const Segment> segments, std::span<const float> values, double lr) {
  const Layout layout = impl_->view().layout;
  std::size_t named = 0;
  std::vector<std::pair<Segment, std::size_t>> order;  // with where its values begin
  for (const Segment& segment : segments) {
    if (segment.offset > layout.count() || segment.count > layout.count() - segment.offset ||
        segment.count > values.size() - named) {
      throw ConfigError(fmt::format("a sparse push names {} elements at {} of {}, with {} values left", segment.count,
                                    segment.offset, layout.count(), values.size() - named));
    }
    if (segment.count > 0) order.emplace_back(segment, named);
    named += segment.count;
  }
  if (named != values.size()) throw ConfigError("a sparse push has more values than elements");
  std::ranges::stable_sort(order, {}, [](auto& entry) { return entry.first.offset; });
  // Runs of neighbours, what is named twice added up.
  Impl::Operation operation;
  operation.lr = lr;
  std::vector<Segment> runs;
  for (auto& [segment, at] : order) {
    if (runs.empty() || segment.offset > runs.back().offset + runs.back().count) runs.push_back({segment.offset, 0});
    Segment& run = runs.back();
    std::size_t known = std::min<std::size_t>(run.offset + run.count - segment.offset, segment.count);
    float* twice = operation.copied.data() + operation.copied.size() - (run.offset + run.count - segment.offset);
    for (std::size_t i = 0; i < known; ++i) twice[i] += values[at + i];
    auto rest = values.subspan(at + known, segment.count - known);
    operation.copied.insert(operation.copied.end(), rest.begin(), rest.end());
    run.count += rest.size();
  }
  operation.from = operation.copied;
  Impl::cut(operation, layout, runs);
  return {impl_->submit(std::move(operation)), 0};
}

Ticket Client::push_pull_segments(std::span<const Segment> segments, std::span<const float> values, double lr,
                                  std::span<float> into) {
  impl_->check_size(into.size());
  const Layout layout = impl_->view().layout;
  std::uint64_t end = 0, named = 0;
  for (const Segment& segment : segments) {
    if (segment.offset < end || segment.offset > layout.count() || segment.count > layout.count() - segment.offset) {
      throw ConfigError(
          fmt::format("a sparse push names {} elements at {} of {}; segments must be in order and must not overlap",
                      segment.count, segment.offset, layout.count()));
    }
    end = segment.offset + segment.count;
    named += segment.count;
  }
  if (named != values.size()) {
    throw ConfigError(fmt::format("a sparse push has {} values for {} elements", values.size(), named));
  }
  Impl::Operation push, pull;
  push.lr = lr;
  push.from = values;
  push.patient = true;
  Impl::cut(push, layout, segments);
  pull.kind = Impl::Operation::Kind::pull;
  pull.into = into;
  pull.exact = !impl_->codes();
  const std::uint64_t first = impl_->submit(std::move(push));
  return {first, impl_->submit(std::move(pull))};
}

Ticket Client::push_rows(std::string_view name, std::span<const std::uint64_t> rows, std::span<const float> values,
                         double lr) {
  const Layout layout = impl_->view().layout;
  const Tensor& tensor = layout.find(name);
  const std::uint64_t width = tensor.count / tensor.rows, base = layout.tensor(name).offset;
  if (values.size() != rows.size() * width) {
    throw ConfigError(fmt::format("tensor {}: {} rows of {} elements need {} values, not {}", name, rows.size(), width,
                                  rows.size() * width, values.size()));
  }
  std::vector<Segment> segments;
  for (std::uint64_t row : rows) {
    if (row >= tensor.rows)
      throw ConfigError(fmt::format("tensor {} has {} rows; there is no {}", name, tensor.rows, row));
    segments.push_back({base + row * width, width});
  }
  return push_segments(segments, values, lr);
}

bool Client::done(const Ticket& ticket) {
  return (ticket.push == 0 || impl_->done(ticket.push)) && (ticket.pull == 0 || impl_->done(ticket.pull));
}

Outcome Client::wait(const Ticket& ticket, Deadline deadline) {
  Outcome outcome;
  if (ticket.push != 0) {
    Outcome pushed = impl_->wait(ticket.push, deadline).outcome;
    outcome.staleness = pushed.staleness;
    outcome.pushed = pushed.pushed;
  }
  if (ticket.pull != 0) {
    Outcome pulled = impl_->wait(ticket.pull, deadline).outcome;
    outcome.version = pulled.version;
    outcome.held_s = pulled.held_s;
    outcome.pulled = pulled.pulled;
  }
  return outcome;
}

std::size_t Client::sum(std::string_view name, std::span<double> values, Deadline deadline) {
  Packer body;
  body.text(name).put(std::chrono::duration<double>(deadline.left()).count());
  body.list(std::vector<double>(values.begin(), values.end()));
  std::string answer = impl_->call(Kind::sum, body.take(), deadline);
  Unpacker from(answer);
  auto parties = from.get<std::uint32_t>();
  auto sums = from.list<double>();
  if (sums.size() != values.size()) {
    throw ConfigError(fmt::format("sum '{}' was of {} numbers, not {}", name, sums.size(), values.size()));
  }
  std::ranges::copy(sums, values.begin());
  return parties;
}

std::optional<std::uint64_t> Client::next_ticket(std::string_view name, std::uint64_t limit, Deadline deadline) {
  std::string answer = impl_->call(Kind::ticket, Packer().text(name).put(limit).take(), deadline);
  Unpacker from(answer);
  bool given = from.flag();
  auto number = from.get<std::uint64_t>();
  return given ? std::optional(number) : std::nullopt;
}

std::uint64_t Client::counted(std::string_view name, Deadline deadline) {
  std::string answer = impl_->call(Kind::ticket, Packer().text(name).put(std::uint64_t{0}).take(), deadline);
  Unpacker from(answer);
  from.flag();
  return from.get<std::uint64_t>();
}

void Client::stop(std::string_view why) { impl_->tell(Kind::stop, Packer().text(why.empty() ? "stop" : why).take()); }

}  // namespace trireme::ps
