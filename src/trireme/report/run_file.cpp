#include "trireme/report/run_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/text/json_text.h"

namespace trireme::train {

using Json = nlohmann::json;

void write_run_file(const std::filesystem::path& path, const Json& run) {
  write_atomically(path, run.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json read_run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw DataError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  }
  std::stringstream text;
  text << file.rdbuf();
  Json run = parse_json(text.str(), path.string());
  if (run.is_object()) return run;
  throw DataError(fmt::format("{}: no JSON object", path.string()));
}

}  // namespace trireme::train
