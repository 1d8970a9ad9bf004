#include "trireme/sync/exchange/tickets.h"

#include <cstring>

#include "trireme/base/error.h"

namespace trireme::sync {
namespace {

std::vector<bool> only_rank_0(int ranks) {
  std::vector<bool> answers(static_cast<std::size_t>(ranks));
  answers[0] = true;
  return answers;
}

}  // namespace

Tickets::Tickets(Communicator& world)
    : answering_(world, only_rank_0(world.size()), [this](int, std::span<std::byte> bytes) {
        Message message;
        if (bytes.size() != sizeof message) throw ProtocolError("a request for a ticket has another length");
        std::memcpy(&message, bytes.data(), sizeof message);
        answer(message);
        std::memcpy(bytes.data(), &message, sizeof message);
      }) {}

void Tickets::begin(std::int64_t epoch, std::int64_t first, std::int64_t limit) {
  epoch_ = epoch;
  first_ = first;
  limit_ = limit;
}

Tickets::Message Tickets::ask(bool stop) {
  Message message{epoch_, first_, limit_, stop ? 1 : 0, -1, 0};
  answering_.ask(0, std::as_writable_bytes(std::span(&message, 1)));
  stopped_ = message.stopped != 0;
  return message;
}

std::optional<std::int64_t> Tickets::take() {
  const auto number = ask(false).number;
  return number < 0 ? std::nullopt : std::optional(number);
}

void Tickets::stop() { ask(true); }

void Tickets::answer(Message& message) {
  MutexLock lock(mutex_);
  if (message.stop != 0) everyone_stops_ = true;
  if (message.epoch > current_) {
    current_ = message.epoch;
    next_ = message.first;
  }
  const bool more = !everyone_stops_ && message.epoch == current_ && next_ < message.limit;
  message.number = more ? next_++ : -1;
  message.stopped = everyone_stops_ ? 1 : 0;
}

}  // namespace trireme::sync
