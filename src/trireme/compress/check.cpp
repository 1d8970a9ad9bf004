#include "trireme/compress/check.h"

#include <fmt/format.h>

namespace trireme::compress {

void check_length(std::string_view codec, std::span<const std::byte> message, std::size_t bytes) {
  if (message.size() != bytes) {
    throw ProtocolError(fmt::format("{}: a message of {} bytes where {} belong", codec, message.size(), bytes));
  }
}

}  // namespace trireme::compress
