// The cores this process may use, and shares of them.
#pragma once
#include <sched.h>

namespace trireme {

// Of the calling thread.
cpu_set_t own_cores();
// As many as this process may use, whatever share its threads keep to.
int usable_cores();

// The k-th of so many equal shares, neighbours together: those of one core's threads, then of one socket. Where there
// are fewer cores than shares they are given out in turn.
cpu_set_t share_of_cores(const cpu_set_t& all, int k, int shares);
// Keeps the calling thread, and those that it starts from now on, to a share; where that is refused they stay free.
void keep_to_share(int k, int shares);

}  // namespace trireme
