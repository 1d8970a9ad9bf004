// The messages of node_link.h as bytes.
#pragma once
#include "trireme/launch/node_link.h"
#include "trireme/launch/wire.h"

namespace trireme::launch {

enum class NodeMessage : std::uint8_t { join = 1, welcome, beat, failed, stop, done, finish, signal };

constexpr auto kBeat = std::chrono::milliseconds(250);
constexpr auto kSettle = std::chrono::seconds(1);
constexpr auto kSayWaiting = std::chrono::milliseconds(700);  // others may be late without a word for this long
// The session of the launchers' handshake; the workers' own has the job's name.
constexpr std::string_view kLaunchSession = "launch";

inline Packer pack(NodeMessage kind) { return Packer(static_cast<std::uint8_t>(kind)); }

inline std::string pack_failure(NodeMessage kind, const JobFailure& failure) {
  return pack(kind).number(failure.cause).number(failure.exit_code).text(failure.text).bytes();
}
inline JobFailure unpack_failure(Unpacker& message) {
  JobFailure failure;
  failure.cause = static_cast<JobFailure::Cause>(message.number());
  failure.exit_code = message.number();
  failure.text = message.text();
  return failure;
}

}  // namespace trireme::launch
