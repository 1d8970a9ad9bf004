// What this host could still give.
#pragma once
#include <cstdint>
#include <optional>

namespace trireme {

// Bytes, as the kernel estimates them; nothing where it does not say.
std::optional<std::uint64_t> available_memory();

}  // namespace trireme
