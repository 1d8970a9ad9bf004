// Finding and ending every process below another, however it hid: other process groups and sessions too.
#pragma once
#include <sys/types.h>

#include <vector>

namespace trireme::launch {

// Children of `root`, their children and so on, from /proc; zombies included.
std::vector<pid_t> descendants(pid_t root);

// Sends `signal` to every descendant of `root`, but for those below the direct children in `spare`; returns those that
// may not be signalled (another user's).
std::vector<pid_t> signal_descendants(pid_t root, int signal, const std::vector<pid_t>& spare = {});

// Direct children of this process, zombies included.
std::vector<pid_t> own_children();

}  // namespace trireme::launch
