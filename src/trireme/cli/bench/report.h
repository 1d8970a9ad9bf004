// A benchmark's results as a table in nccl-tests' manner, or as one JSON object a line.
#pragma once
#include <string>

#include "trireme/cli/bench/session.h"

namespace trireme::bench {

// What was run and how, then the columns' names: lines that start with '#'.
std::string table_head(const Options& options, const Session& session);
std::string table_row(const Options& options, const Row& row);
// An object for Trireme and one for each peer.
std::string json_rows(const Options& options, const Row& row);

}  // namespace trireme::bench
