// The commands that every process obeys which the benchmark measures.
#pragma once
#include <sstream>
#include <string>

#include "trireme/cli/bench/wire.h"

namespace trireme::bench {

// Obeys prepare, burst and stream, whose words come from the other end of the wire, and answers; false for any other
// command. A burst or stream answers with its times in seconds, as floats.
template <typename Rank>
bool obey_measurement(Rank& rank, Wire& wire, const std::string& command, std::istringstream& words) {
  if (command == "prepare") {
    wire.send_line("ok " + rank.prepare(words));
  } else if (command == "burst" || command == "stream") {
    const std::size_t extra = command == "burst" ? rank.burst(words) : rank.stream(words);
    wire.send_line("ok " + std::to_string(rank.times().size()) + ' ' + std::to_string(extra));
    wire.send(std::as_bytes(std::span(rank.times())));
  } else {
    return false;
  }
  return true;
}

}  // namespace trireme::bench
