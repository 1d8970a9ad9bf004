// The handshake, message by message.
#include "trireme/net/join/auth.h"

#include <gtest/gtest.h>

namespace trireme::net {
namespace {

const Link kLink{Purpose::channel, 3, 1, 4, 77};

struct Ends {
  Session client, server;
  Ends() { client = server = make_session(generate_key(), "job"); }
};

TEST(Auth, BothSidesProveTheKey) {
  Ends ends;
  Caller caller(ends.client, kLink);
  Doorkeeper keeper(ends.server, 1, 4);
  Reply challenge = keeper.challenge(caller.hello());
  ASSERT_EQ(challenge.verdict, Verdict::challenge);
  Proof proof = caller.answer(challenge);
  ASSERT_EQ(proof.verdict, Verdict::proof);
  ASSERT_EQ(keeper.check(proof), Verdict::accepted);
  EXPECT_EQ(caller.check(keeper.conclude(Verdict::accepted)), Verdict::accepted);
  EXPECT_EQ(keeper.claim().from, 3);
  EXPECT_EQ(keeper.claim().channel, 77u);
  EXPECT_EQ(keeper.claim().purpose, Purpose::channel);
}

TEST(Auth, AWrongKeyIsSeenByBoth) {
  Session here = make_session(generate_key(), "job"), there = make_session(generate_key(), "job");
  Caller caller(here, kLink);
  Doorkeeper keeper(there, 1, 4);
  Proof proof = caller.answer(keeper.challenge(caller.hello()));
  EXPECT_EQ(proof.verdict, Verdict::wrong_key);
  EXPECT_EQ(keeper.check(proof), Verdict::wrong_key);
  // A client that goes on regardless does not get in either.
  proof.verdict = Verdict::proof;
  EXPECT_EQ(keeper.check(proof), Verdict::wrong_key);
}

TEST(Auth, AnotherJobWithTheSameKeyIsRefused) {
  Key key = generate_key();
  Session here = make_session(key, "job 1"), there = make_session(key, "job 2");
  Caller caller(here, kLink);
  Doorkeeper keeper(there, 1, 4);
  EXPECT_EQ(keeper.challenge(caller.hello()).verdict, Verdict::wrong_job);
  // Nor does it help to lie about the tag: the job is in the key.
  Hello hello = caller.hello();
  hello.tag = there.tag;
  EXPECT_EQ(caller.answer(keeper.challenge(hello)).verdict, Verdict::wrong_key);
}

TEST(Auth, RanksAndSizeMustFit) {
  Ends ends;
  Doorkeeper keeper(ends.server, 1, 4);
  auto verdict = [&](Link link) { return keeper.challenge(Caller(ends.client, link).hello()).verdict; };
  EXPECT_EQ(verdict({Purpose::control, 3, 2, 4, 0}), Verdict::wrong_rank);
  EXPECT_EQ(verdict({Purpose::control, 0, 1, 4, 0}), Verdict::wrong_rank);  // the lower rank never calls
  EXPECT_EQ(verdict({Purpose::control, 1, 1, 4, 0}), Verdict::wrong_rank);
  EXPECT_EQ(verdict({Purpose::control, 4, 1, 4, 0}), Verdict::wrong_rank);
  EXPECT_EQ(verdict({Purpose::control, -1, 1, 4, 0}), Verdict::wrong_rank);
  EXPECT_EQ(verdict({Purpose::control, 3, 1, 5, 0}), Verdict::wrong_size);
  EXPECT_EQ(verdict({static_cast<Purpose>(9), 3, 1, 4, 0}), Verdict::not_ours);
}

// An attacker without the key who hands a listener's own MACs back to it.
TEST(Auth, ReflectionFails) {
  Ends ends;
  Doorkeeper victim(ends.server, 1, 4), other(ends.server, 1, 4);
  Caller innocent(ends.client, kLink);
  Reply challenge = victim.challenge(innocent.hello());
  Proof proof = innocent.answer(challenge);
  proof.mac = challenge.mac;
  EXPECT_EQ(victim.check(proof), Verdict::wrong_key);
  // The MAC of a second listener session over the same hello, and its acceptance, do not serve either.
  proof.mac = other.challenge(innocent.hello()).mac;
  EXPECT_EQ(victim.check(proof), Verdict::wrong_key);
  proof.mac = victim.conclude(Verdict::accepted).mac;
  EXPECT_EQ(victim.check(proof), Verdict::wrong_key);
}

// A recorded conversation, played again to the same listener or to another client.
TEST(Auth, ReplayFails) {
  Ends ends;
  Doorkeeper keeper(ends.server, 1, 4);
  Caller caller(ends.client, kLink);
  Reply challenge = keeper.challenge(caller.hello());
  Proof proof = caller.answer(challenge);
  ASSERT_EQ(keeper.check(proof), Verdict::accepted);
  Reply accepted = keeper.conclude(Verdict::accepted);

  Doorkeeper again(ends.server, 1, 4);
  again.challenge(caller.hello());
  EXPECT_EQ(again.check(proof), Verdict::wrong_key);
  Caller later(ends.client, kLink);
  EXPECT_EQ(later.answer(challenge).verdict, Verdict::wrong_key);
  EXPECT_EQ(later.check(accepted), Verdict::wrong_key);
}

// Whatever an attacker changes of who speaks to whom for what, the MACs no longer fit.
TEST(Auth, EveryByteOfTheHelloIsCovered) {
  Ends ends;
  for (std::size_t i = 0; i < sizeof(Hello); ++i) {
    Caller caller(ends.client, kLink);
    Doorkeeper keeper(ends.server, 1, 4);
    Hello hello = caller.hello();
    reinterpret_cast<unsigned char*>(&hello)[i] ^= 1;
    Proof proof = caller.answer(keeper.challenge(hello));
    EXPECT_NE(proof.verdict, Verdict::proof) << i;
    EXPECT_NE(keeper.check(proof), Verdict::accepted) << i;
  }
}

TEST(Auth, AFalseAcceptanceIsNotBelieved) {
  Ends ends;
  Caller caller(ends.client, kLink);
  Doorkeeper keeper(ends.server, 1, 4);
  Reply reply = keeper.challenge(caller.hello());
  caller.answer(reply);
  reply.verdict = Verdict::accepted;
  EXPECT_EQ(caller.check(reply), Verdict::wrong_key);
  Reply garbage{};
  EXPECT_EQ(caller.check(garbage), Verdict::not_ours);
  EXPECT_EQ(caller.answer(garbage).verdict, Verdict::not_ours);
}

}  // namespace
}  // namespace trireme::net
