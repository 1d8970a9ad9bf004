#include "trireme/launch/emulate/tool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"
#include "trireme/base/process/child_process.h"
#include "trireme/launch/program.h"

namespace trireme::launch {
namespace {

constexpr double kPatience = 30;  // seconds; such a program takes milliseconds

struct Part {
  std::string_view sign, what, option, otherwise;
};
// What a command needs of the kernel, by a word in it.
constexpr auto kParts = std::to_array<Part>({
    {" type bridge", "the bridge device", "CONFIG_BRIDGE", ""},
    {" type veth", "the veth device", "CONFIG_VETH", ""},
    {" tbf ", "the tbf queue that limits rates", "CONFIG_NET_SCH_TBF", ", or leave out --bandwidth"},
    {" netem ", "the netem queue that delays", "CONFIG_NET_SCH_NETEM", ", or leave out --latency"},
});

// PATH of a plain user, and so of some that became root, is without the folders for administrators.
std::string find_tool(const std::string& name) {
  for (const auto& candidate : {name, "/usr/sbin/" + name, "/sbin/" + name}) {
    try {
      return find_program(candidate);
    } catch (const CannotStart&) {
    }
  }
  throw ConfigError(fmt::format("--hosts needs `{}` of iproute2, which is not here: apt-get install iproute2", name));
}

net::Fd memory_file(std::string_view text) {
  net::Fd file(::memfd_create("trireme-tool", MFD_CLOEXEC));
  if (!file || ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    throw Error(fmt::format("cannot make a file in memory: {}", std::strerror(errno)));
  }
  return file;
}

std::string contents(const net::Fd& file) {
  char text[4096];
  ssize_t got = ::pread(file.get(), text, sizeof text, 0);
  return std::string(text, got > 0 ? static_cast<std::size_t>(got) : 0);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// iproute2 ends with "Command failed -:3" for the third command.
std::string failed_command(const std::string& said, const std::vector<std::string>& commands) {
  constexpr std::string_view kFailed = "Command failed -:";
  auto at = said.find(kFailed);
  auto number = at == std::string::npos ? 0 : std::strtoul(said.c_str() + at + kFailed.size(), nullptr, 10);
  return number >= 1 && number <= commands.size() ? commands[number - 1] : "";
}

[[noreturn]] void explain(const std::string& name, const std::string& said, const std::vector<std::string>& commands) {
  auto command = failed_command(said, commands);
  bool unknown = said.find("nknown device type") != std::string::npos ||
                 said.find("kind is unknown") != std::string::npos ||
                 said.find("Operation not supported") != std::string::npos;
  for (const auto& part : kParts) {
    if (!unknown || command.find(part.sign) == std::string::npos) continue;
    throw ConfigError(fmt::format("--hosts: this kernel lacks {} ({}); use one that has it{}", part.what, part.option,
                                  part.otherwise));
  }
  throw ConfigError(fmt::format("--hosts: `{} {}` failed: {}", name, command, first_line(said)));
}

}  // namespace

void run_tool(const std::string& name, const net::Fd& network_namespace, const std::vector<std::string>& commands) {
  auto path = find_tool(name);
  net::Fd script = memory_file(fmt::format("{}\n", fmt::join(commands, "\n"))), said = memory_file("");
  ChildProcess tool({path, "-batch", "-"}, {.in = script.get(),
                                            .out = said.get(),
                                            .err = said.get(),
                                            .own_group = false,
                                            .when_we_end = SIGKILL,
                                            .network_namespace = network_namespace.get()});
  const auto code = tool.wait(Deadline::in_seconds(kPatience));
  if (!code) throw Error(fmt::format("--hosts: `{}` did not end within {} s", name, kPatience));
  auto text = contents(said);
  bool failed = *code == ChildProcess::kUnknown ? text.find("Command failed") != std::string::npos : *code != 0;
  if (failed) explain(name, text, commands);
}

}  // namespace trireme::launch
