// The one family of exceptions. `main` alone turns them into an exit code and one line of text.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

namespace trireme {

// Anything that went wrong for a reason the user can read. `what()` is one line: what, where, what to do.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual int exit_code() const noexcept { return 1; }
};

// The user asked for something that cannot be: a wrong flag, name, size or address.
class ConfigError : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 2; }
};

// A peer died or its connection broke. `rank()` is its rank in the world.
class PeerLost : public Error {
 public:
  PeerLost(int rank, const std::string& what) : Error(what), rank_(rank) {}
  int rank() const noexcept { return rank_; }
  int exit_code() const noexcept override { return 3; }

 private:
  int rank_;
};

// A deadline passed. `rank()` is the rank that was waited for, -1 where it is not one alone.
class Timeout : public Error {
 public:
  Timeout(int rank, const std::string& what) : Error(what), rank_(rank) {}
  int rank() const noexcept { return rank_; }
  int exit_code() const noexcept override { return 4; }

 private:
  int rank_;
};

// A peer said something it must not: a bad frame, a failed authentication.
class ProtocolError : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 5; }
};

// Ranks called different things where they must call the same.
class Mismatch : public ProtocolError {
 public:
  using ProtocolError::ProtocolError;
};

// Another rank gave up and told us why.
class Aborted : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 6; }
};

// A file or a message holds something other than it should.
class DataError : public Error {
 public:
  using Error::Error;
  int exit_code() const noexcept override { return 7; }
};

// Our own bug: the program cannot go on.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace trireme

#define TRIREME_CHECK(condition)                                               \
  do {                                                                         \
    if (!(condition)) ::trireme::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
