// Files that a flag names and a command writes.
#pragma once
#include <string>
#include <string_view>

namespace trireme::cli {

// That `path` can be written, asked before the work whose result it is to hold. Throws Error with the flag, the file
// and the system's reason.
void check_output(const std::string& path, std::string_view flag);

// There whole or not at all; what is no plain file (/dev/stdout, a pipe) takes the text as it is. Throws as above.
void write_output(const std::string& path, std::string_view flag, std::string_view text);

}  // namespace trireme::cli
