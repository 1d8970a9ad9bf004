#include "trireme/launch/outlet.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

namespace trireme::launch {

Outlet::Outlet(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {
  struct stat status {};
  ::fstat(fd, &status);
  is_terminal_ = ::isatty(fd) == 1;
  is_socket_ = S_ISSOCK(status.st_mode);
  if (is_socket_ || S_ISREG(status.st_mode)) return;  // sockets have MSG_DONTWAIT; a file opened again starts at 0
  own_.reset(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (own_) fd_ = own_.get();
}

Outlet::~Outlet() {
  if (waiting_) loop_.forget(fd_);
}

void Outlet::write(std::string_view bytes) {
  if (error_ != 0) return;
  pending_ += bytes;
  if (!waiting_) flush();
}

void Outlet::flush() {
  while (backlog() > 0 && error_ == 0) {
    const char* from = pending_.data() + written_;
    ssize_t put =
        is_socket_ ? ::send(fd_, from, backlog(), MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_, from, backlog());
    if (put >= 0) {
      written_ += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!waiting_) loop_.watch(fd_, EPOLLOUT, [this](std::uint32_t) { flush(); });
      waiting_ = true;
      constexpr std::size_t kWorthMoving = 1 << 16;
      if (written_ > kWorthMoving) {
        pending_.erase(0, written_);
        written_ = 0;
      }
      return;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  pending_.clear();
  written_ = 0;
  if (waiting_) loop_.forget(fd_);
  bool was_waiting = std::exchange(waiting_, false);
  if ((was_waiting || error_ != 0) && drained_) drained_();
}

}  // namespace trireme::launch
