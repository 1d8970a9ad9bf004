#include "trireme/net/join/key_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/net/socket.h"

namespace trireme::net {
namespace fs = std::filesystem;
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

fs::path home(const Environment& environment) {
  if (auto home = environment("HOME")) return *home;
  if (const passwd* user = ::getpwuid(::getuid()); user && user->pw_dir && *user->pw_dir) return user->pw_dir;
  throw ConfigError("HOME is not set, so there is no place for the user's key; set TRIREME_KEY or TRIREME_KEY_FILE");
}

}  // namespace

Key generate_key() {
  Key key;
  fill_random(key.bytes);
  key.of_job = true;
  return key;
}

std::string to_hex(const Key& key) {
  std::string text;
  for (auto byte : key.bytes) text += fmt::format("{:02x}", byte);
  return text;
}

Key parse_key(std::string_view hex, std::string_view what) {
  Key key;
  bool good = hex.size() == 2 * key.bytes.size();
  for (std::size_t i = 0; good && i < key.bytes.size(); ++i) {
    int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);
    good = high >= 0 && low >= 0;
    key.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  if (!good) {
    throw ConfigError(fmt::format("{}: a key is 64 hex digits; what is there has {} characters{}", what, hex.size(),
                                  hex.size() == 64 ? ", not all of them hex digits" : ""));
  }
  key.of_job = true;
  return key;
}

Key load_key_file(const fs::path& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) throw ConfigError(fmt::format("key file {}: {}", path.string(), std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw ConfigError(fmt::format("key file {} is not a plain file", path.string()));
  }
  if (status.st_uid != ::geteuid()) {
    throw ConfigError(fmt::format("key file {} belongs to another user", path.string()));
  }
  if ((status.st_mode & 0177) != 0) {
    throw ConfigError(fmt::format("key file {} has mode {:04o}: others could read it; chmod 600 it and make a new key",
                                  path.string(), status.st_mode & 07777));
  }
  char text[80];
  ssize_t length = ::read(file.get(), text, sizeof text);
  if (length < 0) throw ConfigError(fmt::format("key file {}: {}", path.string(), std::strerror(errno)));
  std::string_view hex(text, static_cast<std::size_t>(length));
  while (!hex.empty() && (hex.back() == '\n' || hex.back() == '\r')) hex.remove_suffix(1);
  return parse_key(hex, fmt::format("key file {}", path.string()));
}

bool store_key_file(const fs::path& path, const Key& key) {
  Key salt = generate_key();
  fs::path fresh = path.string() + "." + to_hex(salt).substr(0, 16);
  auto fail = [&](const char* what) {
    int error = errno;
    ::unlink(fresh.c_str());
    throw ConfigError(fmt::format("key file {}: cannot {}: {}", path.string(), what, std::strerror(error)));
  };
  {
    Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) fail("create it");
    std::string text = to_hex(key) + "\n";
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail("write it");
  }
  // A link appears whole, and fails where a file is: of several ranks that start at once one wins.
  bool made = ::link(fresh.c_str(), path.c_str()) == 0;
  if (!made && errno != EEXIST) fail("place it");
  ::unlink(fresh.c_str());
  return made;
}

Key user_key(const Environment& environment) {
  fs::path folder;
  if (auto state = environment("XDG_STATE_HOME"); state && fs::path(*state).is_absolute()) {
    folder = fs::path(*state) / "trireme";
  } else {
    folder = home(environment) / ".local/state/trireme";
  }
  fs::path path = folder / "key";
  std::error_code error;
  if (!fs::exists(path, error)) {
    fs::create_directories(folder, error);
    if (error)
      throw ConfigError(fmt::format("cannot make {} for the user's key: {}", folder.string(), error.message()));
    store_key_file(path, generate_key());
  }
  Key key = load_key_file(path);
  key.of_job = false;
  return key;
}

Key key_from_environment(const Environment& environment) {
  if (auto hex = environment("TRIREME_KEY")) return parse_key(*hex, "TRIREME_KEY");
  if (auto path = environment("TRIREME_KEY_FILE")) return load_key_file(*path);
  return user_key(environment);
}

Key key_from_environment() { return key_from_environment(process_environment()); }

}  // namespace trireme::net
