// A command of the shell, run to its end.
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace trireme::test {

struct Outcome {
  int code = -1;     // 128 + the signal that ended it
  std::string text;  // stdout, then what was asked for by redirection
};

inline Outcome run_command(const std::string& command) {
  Outcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace trireme::test
