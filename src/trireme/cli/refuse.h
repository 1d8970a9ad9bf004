// Flags that were given where they mean nothing: an error, never ignored.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <string_view>

#include "trireme/base/error.h"

namespace trireme::cli {

// Throws ConfigError "FLAG: why" for the first of `flags` that is on the command line.
inline void refuse_given(const CLI::App& command, std::initializer_list<const char*> flags, std::string_view why) {
  for (const char* flag : flags) {
    if (command.count(flag) > 0) throw ConfigError(fmt::format("{}: {}", flag, why));
  }
}

}  // namespace trireme::cli
