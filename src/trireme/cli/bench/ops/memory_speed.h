// What passes that only move numbers are compared with.
#pragma once

namespace trireme::bench {

// Bytes read and written a second when all threads of the calling thread's team copy much more than the caches hold:
// the best of several times.
double measure_memory();

}  // namespace trireme::bench
