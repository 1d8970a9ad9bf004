// Finding the program to run.
#pragma once
#include <stdexcept>
#include <string>

#include "trireme/base/error.h"

namespace trireme::launch {

// A program that is not there (127) or cannot be run (126), as shells have it.
class CannotStart : public Error {
 public:
  CannotStart(int code, const std::string& what) : Error(what), code_(code) {}
  int exit_code() const noexcept override { return code_; }

 private:
  int code_;
};

// `name` as it is when it has a slash, else looked up in PATH. Throws CannotStart.
std::string find_program(const std::string& name);
CannotStart cannot_start(const std::string& program, int error);

}  // namespace trireme::launch
