// Which key a job has, and how its workers are to find it.
#pragma once
#include <string>

#include "trireme/net/join/key.h"

namespace trireme::launch {

struct JobKey {
  net::Key key;
  std::string file;  // absolute; empty: the workers get it by TRIREME_KEY
};

// `key_file`, else TRIREME_KEY, else TRIREME_KEY_FILE. With none of them: a fresh key for one node; for several on
// loopback the user's own (see key.h); beyond loopback ConfigError.
JobKey choose_job_key(const std::string& key_file, int nodes, bool loopback);

// What the workers of `job` get: the user's own key never leaves the launchers, one derived from it does.
JobKey key_for_workers(const JobKey& key, const std::string& job);

}  // namespace trireme::launch
