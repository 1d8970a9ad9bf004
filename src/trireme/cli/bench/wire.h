// The line between the benchmark and each rank it measures: a Unix socket that carries lines of text, and after some
// replies raw numbers. A rank without work sleeps in read(): whoever is not measured costs nothing.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "trireme/base/clock.h"

namespace trireme::bench {

// One end. Owns the descriptor.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}
  Wire(Wire&& other) noexcept : fd_(other.fd_), pending_(std::move(other.pending_)) { other.fd_ = -1; }
  Wire& operator=(Wire&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(pending_, other.pending_);
    return *this;
  }
  ~Wire();

  // To the benchmark listening at `path`.
  static Wire connect(const std::string& path);

  // All of these throw Error when the other end is gone.
  void send_line(std::string_view line);
  void send(std::span<const std::byte> bytes);
  // Without the newline, at most 4 KiB. Throws Timeout.
  std::string read_line(Deadline deadline);
  void read(std::span<std::byte> bytes, Deadline deadline);

 private:
  void fetch(Deadline deadline);

  int fd_;
  std::string pending_;  // received, not yet asked for
};

// A listening end.
class Listener {
 public:
  explicit Listener(std::string path);
  Listener(const Listener&) = delete;
  ~Listener();
  const std::string& path() const { return path_; }
  // Waits `longest` at most for somebody; -1 when nobody came.
  int accept(Duration longest);

 private:
  std::string path_;
  int fd_;
};

}  // namespace trireme::bench
