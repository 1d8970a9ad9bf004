// For threads that serve: they wake, do a little that somebody waits for, and sleep.
#pragma once

namespace trireme::net {

// Asks the scheduler for short time slices for the calling thread. Beside a thread that computes on the same core it
// then has its turn soon after it wakes, and not after the other's slice of some milliseconds; its share of the core
// stays what it is. Linux 6.12 and later; elsewhere nothing changes.
void take_short_turns();
// Whether the calling thread has asked. Such a thread sleeps where it waits: the cores belong to those it serves.
bool takes_short_turns();

}  // namespace trireme::net
