#include "trireme/net/join/auth.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>
#include <vector>

#include "trireme/base/error.h"
#include "trireme/net/socket.h"

namespace trireme::net {
namespace {

constexpr std::uint16_t kVersion = 1;
constexpr int kMostRanksSaid = 1 << 20;
constexpr std::array<char, 8> kHelloMagic{'t', 'r', 'i', 'r', 'e', 'm', 'e', '?'};
constexpr std::array<char, 8> kReplyMagic{'t', 'r', 'i', 'r', 'e', 'm', 'e', '!'};
constexpr std::array<char, 8> kProofMagic{'t', 'r', 'i', 'r', 'e', 'm', 'e', '='};

Mac hmac(std::span<const std::uint8_t> key, const std::string& text) {
  Mac mac;
  unsigned length = 0;
  const void* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &length);
  if (!done || length != mac.size()) throw Error("OpenSSL cannot compute HMAC-SHA256");
  return mac;
}

template <typename Plain>
void append(std::string& text, const Plain& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

Mac session_mac(const Session& session, std::string_view label, const Hello& hello, const Nonce& nonce) {
  std::string text("trireme 1 ");
  text += label;
  append(text, hello);
  append(text, nonce);
  return hmac(session.key, text);
}

bool same(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

bool is_refusal(Verdict verdict) { return verdict >= Verdict::not_ours && verdict <= Verdict::rank_taken; }

}  // namespace

Session make_session(const Key& key, std::string_view job) {
  Session session;
  session.key = hmac(key.bytes, "trireme 1 session" + std::string(job));
  Mac digest;
  unsigned length = 0;
  std::string named = "trireme 1 job" + std::string(job);
  if (EVP_Digest(named.data(), named.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw Error("OpenSSL cannot compute SHA-256");
  }
  std::memcpy(session.tag.data(), digest.data(), session.tag.size());
  return session;
}

std::string_view reason(Verdict refusal) {
  switch (refusal) {
    case Verdict::wrong_key:
      return "the job keys differ";
    case Verdict::wrong_job:
      return "it belongs to another job";
    case Verdict::wrong_rank:
      return "it is meant for another rank";
    case Verdict::wrong_size:
      return "the numbers of ranks differ";
    case Verdict::rank_taken:
      return "that rank is connected already";
    default:
      return "it does not speak this protocol";
  }
}

Caller::Caller(const Session& session, const Link& link) : session_(session) {
  hello_ = Hello{kHelloMagic,
                 kVersion,
                 static_cast<std::uint16_t>(link.purpose),
                 static_cast<std::uint32_t>(link.from),
                 static_cast<std::uint32_t>(link.to),
                 static_cast<std::uint32_t>(link.ranks),
                 link.channel,
                 session.tag,
                 {}};
  fill_random(hello_.nonce);
}

Proof Caller::answer(const Reply& challenge) {
  Proof proof{kProofMagic, Verdict::not_ours, 0, {}};
  if (challenge.magic != kReplyMagic) return proof;
  proof.verdict = is_refusal(challenge.verdict) ? challenge.verdict : Verdict::wrong_key;
  if (challenge.verdict != Verdict::challenge) return proof;
  server_nonce_ = challenge.nonce;
  if (!same(challenge.mac, session_mac(session_, "server", hello_, server_nonce_))) return proof;
  proof.verdict = Verdict::proof;
  proof.mac = session_mac(session_, "client", hello_, server_nonce_);
  return proof;
}

Verdict Caller::check(const Reply& last) const {
  if (last.magic != kReplyMagic) return Verdict::not_ours;
  if (is_refusal(last.verdict)) return last.verdict;
  bool good =
      last.verdict == Verdict::accepted && same(last.mac, session_mac(session_, "accept", hello_, server_nonce_));
  return good ? Verdict::accepted : Verdict::wrong_key;
}

Reply Doorkeeper::challenge(const Hello& hello) {
  hello_ = hello;
  Reply reply{kReplyMagic, Verdict::challenge, static_cast<std::uint32_t>(ranks_), {}, {}};
  auto refuse = [&](Verdict verdict) {
    reply.verdict = verdict;
    return reply;
  };
  bool known = hello.purpose == static_cast<std::uint16_t>(Purpose::control) ||
               hello.purpose == static_cast<std::uint16_t>(Purpose::channel);
  if (hello.magic != kHelloMagic || hello.version != kVersion || !known || hello.ranks > kMostRanksSaid) {
    return refuse(Verdict::not_ours);
  }
  if (hello.tag != session_.tag) return refuse(Verdict::wrong_job);
  if (hello.ranks != static_cast<std::uint32_t>(ranks_)) return refuse(Verdict::wrong_size);
  // The higher rank always calls the lower.
  if (hello.to != static_cast<std::uint32_t>(rank_) || hello.from <= hello.to || hello.from >= hello.ranks) {
    return refuse(Verdict::wrong_rank);
  }
  fill_random(nonce_);
  reply.nonce = nonce_;
  reply.mac = session_mac(session_, "server", hello_, nonce_);
  return reply;
}

Verdict Doorkeeper::check(const Proof& proof) const {
  if (proof.magic != kProofMagic) return Verdict::not_ours;
  bool good = proof.verdict == Verdict::proof && same(proof.mac, session_mac(session_, "client", hello_, nonce_));
  return good ? Verdict::accepted : Verdict::wrong_key;
}

Reply Doorkeeper::conclude(Verdict verdict) const {
  Reply reply{kReplyMagic, verdict, static_cast<std::uint32_t>(ranks_), {}, {}};
  if (verdict == Verdict::accepted) reply.mac = session_mac(session_, "accept", hello_, nonce_);
  return reply;
}

Link Doorkeeper::claim() const {
  return {static_cast<Purpose>(hello_.purpose), static_cast<int>(hello_.from), static_cast<int>(hello_.to),
          static_cast<int>(hello_.ranks), hello_.channel};
}

}  // namespace trireme::net
