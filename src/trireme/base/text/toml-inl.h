// toml++, with what it takes for impossible thrown instead of ending the program: it happens with damaged files. For
// all files that include toml++, so that there is one of it.
#pragma once

namespace trireme {
// Thrown by toml::parse besides its own parse_error; has no place.
struct MalformedToml {};
[[noreturn]] inline void toml_is_malformed() { throw MalformedToml{}; }
}  // namespace trireme

#define TOML_EXCEPTIONS 1
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::trireme::toml_is_malformed())
// Without checks it would take them for granted.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
