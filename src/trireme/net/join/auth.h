// Mutual authentication of a fresh connection by the job key, before anything else is said on it. C connects, S
// listens:
//
//   C → S  hello   purpose, from, to, ranks, channel, tag of the job, nonce_C
//   S → C  reply   challenge: nonce_S, HMAC(K, "server" ‖ hello ‖ nonce_S)
//   C → S  proof   HMAC(K, "client" ‖ hello ‖ nonce_S), or a refusal
//   S → C  reply   accepted: HMAC(K, "accept" ‖ hello ‖ nonce_S), or a refusal
//
// HMAC-SHA256; K = HMAC(job key, "trireme 1 session" ‖ job). The MACs cover who speaks to whom, for what and in which
// job; the labels keep one side's MAC from serving as the other's; both nonces are fresh, so nothing can be replayed.
// All messages have fixed sizes: a listener reads at most 128 bytes of a peer that it does not know.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trireme/net/join/key.h"

namespace trireme::net {

using Mac = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;

enum class Purpose : std::uint8_t { control = 1, channel = 2 };

// What one connection is for. Ranks are those of the world.
struct Link {
  Purpose purpose = Purpose::control;
  int from = 0;
  int to = 0;
  int ranks = 0;
  std::uint64_t channel = 0;
};

struct Session {
  Mac key{};
  std::array<std::uint8_t, 16> tag{};  // of the job's name, to tell another job from a wrong key
};
Session make_session(const Key& key, std::string_view job);

enum class Verdict : std::uint32_t {
  challenge = 1,
  proof,
  accepted,
  not_ours,  // not this protocol, or another version of it
  wrong_key,
  wrong_job,
  wrong_rank,  // meant for another rank
  wrong_size,  // believes in another number of ranks
  rank_taken,  // this rank is connected already
};
// "the job keys differ"; for refusals.
std::string_view reason(Verdict refusal);

// Fixed layouts, no padding, little-endian.
struct Hello {
  std::array<char, 8> magic;
  std::uint16_t version;
  std::uint16_t purpose;
  std::uint32_t from, to, ranks;
  std::uint64_t channel;
  std::array<std::uint8_t, 16> tag;
  Nonce nonce;
};
struct Reply {
  std::array<char, 8> magic;
  Verdict verdict;
  std::uint32_t ranks;  // of the listener's world
  Nonce nonce;
  Mac mac;
};
struct Proof {
  std::array<char, 8> magic;
  Verdict verdict;
  std::uint32_t unused;
  Mac mac;
};
static_assert(sizeof(Hello) == 80 && sizeof(Reply) == 80 && sizeof(Proof) == 48);

// The connecting side.
class Caller {
 public:
  Caller(const Session& session, const Link& link);
  const Hello& hello() const { return hello_; }
  // Answers the challenge: a proof, or a refusal (`verdict` says why) when the listener's MAC is wrong.
  Proof answer(const Reply& challenge);
  // Whether the last reply accepts us.
  Verdict check(const Reply& last) const;

 private:
  const Session& session_;
  Hello hello_;
  Nonce server_nonce_{};
};

// The listening side.
class Doorkeeper {
 public:
  // `rank` of `ranks` is who listens.
  Doorkeeper(const Session& session, int rank, int ranks) : session_(session), rank_(rank), ranks_(ranks) {}
  // The verdict in the reply is `challenge`, or a refusal, after which the connection is closed.
  Reply challenge(const Hello& hello);
  // Whether the peer is who it says: accepted, or the reason not.
  Verdict check(const Proof& proof) const;
  // The last word: `verdict` is accepted or a refusal.
  Reply conclude(Verdict verdict) const;
  // What the peer claims; true only once check() accepted it.
  Link claim() const;

 private:
  const Session& session_;
  const int rank_, ranks_;
  Hello hello_{};
  Nonce nonce_{};
};

}  // namespace trireme::net
