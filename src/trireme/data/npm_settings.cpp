#include "trireme/data/npm_settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "trireme/base/text/json_file.h"
#include "trireme/base/text/split.h"

namespace trireme::data {
namespace {

using NpmFile = std::map<std::string, std::string, std::less<>>;

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\"'");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\"'") + 1 - begin);
}

// ${NAME} stands for a variable of the environment.
std::string expanded(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.compare(at, 2, "${") == 0 ? text.find('}', at) : text.npos;
    if (end == text.npos) {
      result += text[at++];
    } else {
      result += variable(std::string(text.substr(at + 2, end - at - 2)));
      at = end + 1;
    }
  }
  return result;
}

NpmFile user_file() {
  std::string path = variable("npm_config_userconfig");
  if (path.empty()) path = variable("HOME") + "/.npmrc";
  std::error_code error;
  NpmFile settings;
  if (!std::filesystem::is_regular_file(path, error)) return settings;
  const std::string text = read_text(path, 1 << 20);
  for (std::string_view line : split(text, '\n')) {
    line = trimmed(line);
    const auto equal = line.find('=');
    if (line.empty() || line[0] == '#' || line[0] == ';' || equal == line.npos) continue;
    settings[std::string(trimmed(line.substr(0, equal)))] = expanded(trimmed(line.substr(equal + 1)));
  }
  return settings;
}

// A key as "https-proxy"; from the environment npm_config_https_proxy or its capitals.
std::string setting(const NpmFile& file, const std::string& key) {
  std::string name = "npm_config_" + key;
  std::ranges::replace(name, '-', '_');
  if (auto value = variable(name); !value.empty()) return value;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (auto value = variable(name); !value.empty()) return value;
  const auto found = file.find(key);
  return found == file.end() ? "" : found->second;
}

}  // namespace

NpmSettings npm_settings(std::string_view package) {
  const NpmFile file = user_file();
  NpmSettings settings;
  if (package.starts_with('@')) {
    const auto found = file.find(std::string(package.substr(0, package.find('/'))) + ":registry");
    if (found != file.end()) settings.registry = found->second;
  }
  if (settings.registry.empty()) settings.registry = setting(file, "registry");
  if (settings.registry.empty()) settings.registry = "https://registry.npmjs.org";
  while (settings.registry.ends_with('/')) settings.registry.pop_back();
  settings.ca_file = setting(file, "cafile");
  settings.proxy = setting(file, "https-proxy");
  if (settings.proxy.empty() || settings.registry.starts_with("http://")) {
    if (auto plain = setting(file, "proxy"); !plain.empty()) settings.proxy = plain;
  }
  // Tokens are kept by registry, without the scheme: //registry.example/npm/:_authToken
  if (const auto at = settings.registry.find("//"); at != std::string::npos) {
    const auto found = file.find(settings.registry.substr(at) + "/:_authToken");
    if (found != file.end()) settings.token = found->second;
  }
  return settings;
}

}  // namespace trireme::data
