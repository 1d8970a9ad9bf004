// Another program, run to its end, without a shell.
#pragma once
#include <string>
#include <vector>

namespace trireme::data {

struct Outcome {
  bool found = false;  // the program is installed
  int code = 0;        // 128 + the signal that killed it
  std::string errors;  // the end of what it wrote to standard error
};

// Looked for in PATH; its standard output goes nowhere.
Outcome run_program(const std::vector<std::string>& words);

}  // namespace trireme::data
