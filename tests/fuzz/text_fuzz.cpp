// libFuzzer: the files that people write or hand in. The first byte says what the rest is taken for. Nothing but a
// DataError of one line may come of them. See docs/security.md for how to run it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trireme/base/error.h"
#include "trireme/base/text/json_place.h"
#include "trireme/base/text/json_text.h"
#include "trireme/base/text/toml_text.h"
#include "trireme/cluster/cluster.h"
#include "trireme/cluster/planner/plan_file.h"
#include "trireme/cluster/profile/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 6) {
      case 0:
        (void)trireme::parse_json(text, "f");
        break;
      case 1:
        (void)trireme::parse_toml(text, "f");
        break;
      case 2:
        (void)trireme::cluster::parse_cluster(text, "f");
        break;
      case 3:
        (void)trireme::cluster::parse_profile(text, "f");
        break;
      case 4:
        (void)trireme::cluster::parse_plan(text, "f");
        break;
      default:
        (void)trireme::json_line(text, "/a/0/b");
    }
  } catch (const trireme::DataError& error) {
    const std::string_view said = error.what();
    if (said.find('\n') != said.npos || said.size() > 4000) std::abort();
  }
  return 0;
}
