// `trireme ARGUMENTS`, through the shell.
#pragma once
#include <string>

#include "tests/run_command.h"

namespace trireme::test {

inline Outcome run_trireme(const std::string& arguments) {
  return run_command(std::string(TRIREME_PROGRAM) + " " + arguments);
}

// Nothing but one line on stderr and exit code 2.
inline bool refuses(const std::string& arguments) {
  Outcome outcome = run_trireme(arguments + " 2>&1");
  return outcome.code == 2 && outcome.text.starts_with("trireme: ") &&
         outcome.text.find('\n') == outcome.text.size() - 1;
}

}  // namespace trireme::test
