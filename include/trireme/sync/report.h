// What synchronizing has cost a worker so far.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trireme::sync {

// What compression did for this worker so far.
struct Compressed {
  std::uint64_t bytes_before = 0, bytes_after = 0;  // that would have been sent without it; that were
  double encode_s = 0, decode_s = 0;
  double error = 0;    // ‖x − decoded‖ / ‖x‖ of what was encoded, mean over the exchanges looked at
  double carried = 0;  // 2-norm of what error feedback holds now
};

// What this worker has pushed so.
struct SparsePushes {
  struct Table {
    std::string name;
    std::uint64_t rows = 0, pushed = 0;  // of the table; of all pushes together
  };
  std::vector<Table> tables;
  std::uint64_t pushes = 0;
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of whole gradients; as they were pushed, with the places
};

// What a strategy has cost this worker so far.
struct Report {
  double wait_s = 0;                           // in which it could do nothing but wait for others
  std::uint64_t bytes_sent = 0;                // besides what the communicator given to it counts; to servers, and
                                               // by them to this worker
  std::map<std::int64_t, std::int64_t> stale;  // steps by staleness: by how many updates (or steps) what was applied
                                               // lagged; empty where nothing is stale by construction
  double consensus = -1;  // root mean square distance of the workers' weights to their mean, at the last model();
                          // negative where all are equal by construction
  std::optional<Compressed> compressed;  // where something is
  std::optional<SparsePushes> sparse;    // where rows that nobody touched are not pushed
};

}  // namespace trireme::sync
