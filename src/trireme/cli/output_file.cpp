#include "trireme/cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"

namespace trireme::cli {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_write(const std::string& path, std::string_view flag, int error) {
  throw Error(fmt::format("{}: cannot write {}: {}; choose a folder that is there, may be written and has space", flag,
                          path, std::generic_category().message(error)));
}

// Whether a new file may take its place. A device must stay what it is, and a link must lead where it did.
bool replaceable(const std::string& path) {
  std::error_code ignored;
  const auto type = fs::symlink_status(path, ignored).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found;
}

}  // namespace

void check_output(const std::string& path, std::string_view flag) {
  std::error_code ignored;
  if (path.empty()) throw ConfigError(fmt::format("{}: the name of a file was expected", flag));
  if (fs::is_directory(path, ignored)) cannot_write(path, flag, EISDIR);
  // With the dot, so that a file in a folder's place is noticed.
  const auto where = replaceable(path) ? fs::absolute(path).parent_path() / "." : fs::path(path);
  if (::access(where.c_str(), W_OK) != 0) cannot_write(path, flag, errno);
}

void write_output(const std::string& path, std::string_view flag, std::string_view text) {
  if (replaceable(path)) {
    try {
      return write_atomically(path, text);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", flag, error.what()));
    }
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) cannot_write(path, flag, errno);
}

}  // namespace trireme::cli
