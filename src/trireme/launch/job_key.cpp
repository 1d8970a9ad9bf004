#include "trireme/launch/job_key.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "trireme/base/error.h"
#include "trireme/net/join/auth.h"
#include "trireme/net/join/key_sources.h"

namespace trireme::launch {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == 0) return std::nullopt;
  return value;
}

}  // namespace

JobKey choose_job_key(const std::string& key_file, int nodes, bool loopback) {
  auto from_file = [](const std::string& path) {
    return JobKey{net::load_key_file(path), std::filesystem::absolute(path)};
  };
  if (!key_file.empty()) return from_file(key_file);
  if (auto hex = variable("TRIREME_KEY")) return {net::parse_key(*hex, "TRIREME_KEY"), ""};
  if (auto path = variable("TRIREME_KEY_FILE")) return from_file(*path);
  if (nodes == 1) return {net::generate_key(), ""};
  if (loopback) return {net::user_key(variable), ""};
  throw ConfigError(
      "nodes that meet beyond loopback must share a key: give each the same --key-file (mode 0600) or TRIREME_KEY; "
      "`openssl rand -hex 32` makes one");
}

JobKey key_for_workers(const JobKey& key, const std::string& job) {
  if (key.key.of_job) return key;
  JobKey derived;
  derived.key.bytes = net::make_session(key.key, job).key;
  derived.key.of_job = true;
  return derived;
}

}  // namespace trireme::launch
