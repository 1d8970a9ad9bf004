// Runs `trireme ARGUMENTS` through the shell to its end.
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace trireme::test {

struct Outcome {
  int code = -1;
  std::string text;  // stdout, then what was asked for by redirection
};

inline Outcome run_trireme(const std::string& arguments) {
  Outcome outcome;
  std::string command = TRIREME_PROGRAM;
  command.append(1, ' ').append(arguments);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), got);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

// Nothing but one line on stderr and exit code 2.
inline bool refuses(const std::string& arguments) {
  Outcome outcome = run_trireme(arguments + " 2>&1");
  return outcome.code == 2 && outcome.text.starts_with("trireme: ") &&
         outcome.text.find('\n') == outcome.text.size() - 1;
}

}  // namespace trireme::test
