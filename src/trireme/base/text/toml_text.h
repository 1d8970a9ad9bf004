// TOML that people write or hand in.
#pragma once
#include <string>
#include <string_view>

#include "trireme/base/text/toml-inl.h"

namespace trireme {

// Throws DataError, one line with file and line, where the text is no TOML, and where keys have more than 32 parts or
// lists and tables within values more than 32 levels, on which the library would exhaust the stack.
toml::table parse_toml(std::string_view text, const std::string& file);

}  // namespace trireme
