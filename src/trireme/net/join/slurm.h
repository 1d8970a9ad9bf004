// Slurm's ways to write lists of hosts and of task counts.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme::net {

// "node[01-03,7]-a,login" → node01-a node02-a node03-a node7-a login. Throws ConfigError naming `what`; lists are
// bounded at 65,536 hosts.
std::vector<std::string> expand_hosts(std::string_view list, std::string_view what);

// "2(x3),1" → 2 2 2 1.
std::vector<int> expand_tasks(std::string_view list, std::string_view what);

}  // namespace trireme::net
