#include "trireme/ps/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "trireme/base/error.h"
#include "trireme/base/size.h"
#include "trireme/net/environment.h"
#include "trireme/ps/client_impl.h"
#include "trireme/ps/endpoint.h"

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
  options.key = net::key_from_environment(net::process_environment());
  if (const char* rank = std::getenv("RANK")) {
    options.rank = static_cast<int>(parse_integer(rank, "RANK", 0, 1 << 20));
  }
  return options;
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;

WorkerId Client::id() const { return impl_->id(); }
void Client::declare(const JobSpec& spec, std::span<const float> initial, Deadline deadline) {
  impl_->declare(spec, initial, deadline);
}

View Client::view() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->view_;
}
std::uint64_t Client::count() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->view_.layout.count();
}
std::uint64_t Client::clock() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->clock_;
}
bool Client::joined_late() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->late_;
}
std::size_t Client::live_workers() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->view_.workers.size();
}
std::string Client::stopped() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->view_.stop;
}
std::uint64_t Client::bytes_moved() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->bytes_moved_;
}

std::span<float> Client::allocate(std::size_t count) { return {impl_->memory_.allocate(count), count}; }
void Client::release(std::span<float> memory) noexcept { impl_->memory_.release(memory.data()); }

Ticket Client::push(std::span<const float> gradient, double lr) {
  impl_->check_size(gradient.size());
  Impl::Operation operation;
  operation.lr = lr;
  operation.from = gradient;
  return {impl_->submit(std::move(operation)), 0};
}

Ticket Client::pull(std::span<float> into) {
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
  std::uint64_t first = impl_->submit(std::move(push));
  return {first, impl_->submit(std::move(pull))};
}

Ticket Client::push_segments(std::span<const Segment> segments, std::span<const float> values, double lr) {
  const Layout layout = view().layout;
  // By place; what is named twice is added up element by element.
  std::map<std::uint64_t, float> elements;
  std::size_t at = 0;
  for (const Segment& segment : segments) {
    if (segment.offset > layout.count() || segment.count > layout.count() - segment.offset ||
        segment.count > values.size() - at) {
      throw ConfigError(fmt::format("a sparse push names {} elements at {} of {}, with {} values left", segment.count,
                                    segment.offset, layout.count(), values.size() - at));
    }
    for (std::uint64_t i = 0; i < segment.count; ++i) elements[segment.offset + i] += values[at++];
  }
  if (at != values.size()) throw ConfigError("a sparse push has more values than elements");
  Impl::Operation operation;
  operation.lr = lr;
  operation.sparse = true;
  auto next = elements.begin();
  for (std::size_t shard = 0; shard < layout.shards(); ++shard) {
    Segment range = layout.shard(shard);
    auto& list = operation.segments.emplace_back();
    operation.value_begins.push_back(operation.values.size());
    for (; next != elements.end() && next->first < range.offset + range.count; ++next) {
      std::uint64_t offset = next->first - range.offset;
      if (list.empty() || list.back().offset + list.back().count != offset) list.push_back({offset, 0});
      ++list.back().count;
      operation.values.push_back(next->second);
    }
  }
  operation.value_begins.push_back(operation.values.size());
  return {impl_->submit(std::move(operation)), 0};
}

Ticket Client::push_rows(std::string_view name, std::span<const std::uint64_t> rows, std::span<const float> values,
                         double lr) {
  const Layout layout = view().layout;
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
  if (ticket.push != 0) outcome.staleness = impl_->wait(ticket.push, deadline).outcome.staleness;
  if (ticket.pull != 0) {
    Outcome pulled = impl_->wait(ticket.pull, deadline).outcome;
    outcome.version = pulled.version;
    outcome.held_s = pulled.held_s;
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

void Client::stop(std::string_view why) { impl_->tell(Kind::stop, Packer().text(why.empty() ? "stop" : why).take()); }

}  // namespace trireme::ps
