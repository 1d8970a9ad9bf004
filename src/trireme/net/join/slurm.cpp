#include "trireme/net/join/slurm.h"

#include <fmt/format.h>

#include "trireme/base/error.h"
#include "trireme/base/text/size.h"

namespace trireme::net {
namespace {

constexpr std::size_t kMost = 65536;

// Cuts at commas that are not inside brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    } else if (text[i] == '[') {
      ++depth;
    } else if (text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

class HostList {
 public:
  HostList(std::string_view list, std::string_view what) : list_(list), what_(what) {}

  void expand(const std::string& before, std::string_view pattern) {
    auto open = pattern.find('[');
    if (open == std::string_view::npos) return add(before + std::string(pattern));
    auto close = pattern.find(']', open);
    if (close == std::string_view::npos) fail();
    std::string prefix = before + std::string(pattern.substr(0, open));
    for (auto range : split(pattern.substr(open + 1, close - open - 1)))
      expand_range(prefix, range, pattern.substr(close + 1));
  }

  std::vector<std::string> hosts;

 private:
  void expand_range(const std::string& prefix, std::string_view range, std::string_view rest) {
    auto dash = range.find('-');
    std::string_view low = range.substr(0, dash);
    std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    if (low.empty() || low.size() > 9 || high.size() > 9) fail();
    auto first = parse_integer(low, what_, 0, 999999999);
    auto last = parse_integer(high, what_, first, 999999999);
    // The width of the first number pads the others: 08-10 is 08 09 10.
    for (auto n = first; n <= last; ++n) expand(prefix + fmt::format("{:0{}}", n, low.size()), rest);
  }

  void add(std::string host) {
    if (host.empty() || host.find_first_of("[] \t") != std::string::npos) fail();
    if (hosts.size() == kMost) throw ConfigError(fmt::format("{}: more than {} hosts", what_, kMost));
    hosts.push_back(std::move(host));
  }

  [[noreturn]] void fail() const {
    throw ConfigError(fmt::format("{}: '{}' is not a list of hosts such as node[1-3],login", what_, list_));
  }

  std::string_view list_, what_;
};

}  // namespace

std::vector<std::string> expand_hosts(std::string_view list, std::string_view what) {
  HostList result(list, what);
  for (auto pattern : split(list)) result.expand("", pattern);
  return std::move(result.hosts);
}

std::vector<int> expand_tasks(std::string_view list, std::string_view what) {
  std::vector<int> tasks;
  for (auto part : split(list)) {
    std::int64_t times = 1;
    if (auto open = part.find("(x"); open != std::string_view::npos && part.ends_with(')')) {
      times = parse_integer(part.substr(open + 2, part.size() - open - 3), what, 1, kMost);
      part = part.substr(0, open);
    }
    auto count = parse_integer(part, what, 1, 1 << 20);
    if (tasks.size() + static_cast<std::size_t>(times) > kMost) {
      throw ConfigError(fmt::format("{}: more than {} hosts", what, kMost));
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), static_cast<int>(count));
  }
  return tasks;
}

}  // namespace trireme::net
