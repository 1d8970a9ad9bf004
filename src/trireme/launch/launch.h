// Starts a program on several workers of this host, or this host's share of a job that spans hosts, and stays until
// the last of them is gone. Used by `trireme run`, and by commands that launch themselves.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/net/emulated_network.h"

namespace trireme::launch {

enum class Output {
  prefix,       // whole lines, each begun by "[rank] "
  lines,        // whole lines as they are
  passthrough,  // the workers write to our stdout and stderr themselves
  capture,      // every piece goes to LaunchSpec::capture, nothing is printed
};

struct LaunchSpec {
  std::string name = "trireme run";  // begins each line said on stderr
  std::vector<std::string> command;  // the program (a path, or a name in PATH) and its arguments
  int workers = 1;                   // on this host
  std::string transport = "auto";    // TRIREME_TRANSPORT of the workers: auto, shm or tcp
  std::string bind;                  // TRIREME_BIND of the workers; empty: loopback, or the address nodes meet at
  std::string key_file;              // hex, mode 0600; empty: TRIREME_KEY_FILE or TRIREME_KEY if set, else a fresh key
  std::vector<std::pair<std::string, std::string>> env;  // added for every worker, over what is inherited

  Output output = Output::prefix;
  std::function<void(int rank, bool is_stderr, std::string_view bytes)> capture;
  bool stdin_to_rank0 = true;  // else every worker reads an empty stdin
  bool verbose = false;
  // Workers whose sudden death does not end the job, and what they are called; by rank. None: every death does, "rank
  // N".
  std::function<bool(int rank)> expendable;
  std::function<std::string(int rank)> called;
  // How long a worker may stand still, stopped by a signal, before it is given up: an expendable one is killed, for any
  // other the job ends. Asked when it is stopped; none: as long as it likes.
  std::function<double(int rank)> stopped_s;
  int inherited = -1;    // a descriptor that every worker gets under its number; -1: none
  double grace_s = 0.5;  // from SIGTERM to SIGKILL when the rest is stopped

  // Hosts emulated on this machine, the workers spread evenly over them; only with `nodes` 1. Needs root.
  net::EmulatedNetwork network;
  std::function<int(int rank)> host_of;  // which of them a worker lives on; none: evenly, neighbours together

  // Several hosts: each runs a launcher with the same endpoint and key; node 0's listens there.
  int nodes = 1;
  int node = 0;
  std::string endpoint;   // "host:port"; empty: this host alone
  double timeout_s = 60;  // for all nodes to arrive
  double silence_s = 3;   // a node that says nothing for this long is lost
};

struct LaunchResult {
  int exit_code = 0;    // 0 when every worker ended with 0, else the culprit's: its code, or 128 + signal
  std::string failure;  // one line on who failed and how; empty when all is well
  int rank = -1;        // the culprit, if it is a worker of this host
  pid_t pid = -1;
  int wait_status = 0;  // as from waitpid
};

inline constexpr int kMostWorkers = 4096;

// Throws ConfigError on a specification that cannot be and Error on a program that is not there, before anything was
// started. What goes wrong later is in the result; so are nodes that stay away (exit code 4) or hold another key (5).
// When it returns or throws, no process started by it is left: not even if this process is killed meanwhile. Call it
// from a process without other threads: it forks.
LaunchResult launch(const LaunchSpec& spec);

// This very program, for commands that launch themselves.
std::string own_program();

}  // namespace trireme::launch
