// The listener among strangers.
#include "trireme/net/join/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "trireme/base/error.h"
#include "trireme/net/join/connector.h"

namespace trireme::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// A listener of rank 0 of 4 with a thread that serves it.
class Guarded {
 public:
  explicit Guarded(ListenerLimits limits) : limits_(limits) {
    Fd listener = listen_at(resolve("127.0.0.1", 0).front());
    address = local_address(listener.get());
    listener_ = std::make_unique<Listener>(std::move(listener), session, 0, 4, limits);
    thread_ = std::jthread([this](std::stop_token stop) { serve(stop); });
  }

  Fd call(const Session& with, double seconds = 5) {
    Place place{{address}, with};
    return connect_to([&] { return place; }, {Purpose::control, 1, 0, 4, 0}, Deadline::in_seconds(seconds));
  }
  Fd stranger() { return connect_to(address, Deadline::in(1s)); }
  std::vector<std::string> reports() {
    std::lock_guard lock(mutex_);
    return reports_;
  }

  const Key key = generate_key();
  const Session session = make_session(key, "job");
  Address address;
  std::atomic<int> entered = 0;
  std::atomic<std::size_t> most_visitors = 0;

 private:
  void serve(std::stop_token stop) {
    std::vector<pollfd> set;
    while (!stop.stop_requested()) {
      set.clear();
      listener_->watch(set);
      int longest = listener_->sleep_ms();
      ::poll(set.data(), set.size(), longest < 0 ? 10 : std::min(longest, 10));
      listener_->serve(
          set, [](const Link&) { return Verdict::accepted; },
          [&](const Link&, Fd fd) {
            guests_.push_back(std::move(fd));
            ++entered;
          },
          [&](const std::string& line) {
            std::lock_guard lock(mutex_);
            reports_.push_back(line);
          });
      most_visitors = std::max(most_visitors.load(), listener_->visitors());
    }
  }

  const ListenerLimits limits_;
  std::unique_ptr<Listener> listener_;
  std::vector<Fd> guests_;
  std::mutex mutex_;
  std::vector<std::string> reports_;
  std::jthread thread_;
};

// Until the other side closes: how long that took.
Duration until_closed(const Fd& fd) {
  auto start = Clock::now();
  char byte;
  while (wait_for(fd.get(), POLLIN, Deadline::in(10s)) && ::recv(fd.get(), &byte, 1, 0) > 0) {
  }
  return Clock::now() - start;
}

TEST(Listener, LetsAGoodPeerIn) {
  Guarded listener({});
  EXPECT_TRUE(listener.call(listener.session));
  while (listener.entered < 1) std::this_thread::yield();
}

TEST(Listener, SilenceIsShownOutInTime) {
  Guarded listener({.patience = 200ms});
  Fd silent = listener.stranger();
  auto lasted = until_closed(silent);
  EXPECT_GE(lasted, 150ms);
  EXPECT_LT(lasted, 3s);
}

TEST(Listener, DrippingBytesDoNotBuyTime) {
  Guarded listener({.patience = 300ms});
  Fd slow = listener.stranger();
  auto start = Clock::now();
  while (Clock::now() - start < 5s) {
    if (::send(slow.get(), "t", 1, MSG_NOSIGNAL) < 0) break;
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_LT(Clock::now() - start, 4s);
}

// More than the 4 KiB that a stranger may ever get: nobody reads it.
TEST(Listener, AFloodIsNotRead) {
  Guarded listener({.patience = 2s});
  Fd flood = listener.stranger();
  std::string garbage(1 << 20, 'x');
  ::send(flood.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  EXPECT_LT(until_closed(flood), 1500ms);
  EXPECT_TRUE(listener.call(listener.session));
}

TEST(Listener, AWrongKeyIsOneLineOnBothSides) {
  Guarded listener({});
  try {
    listener.call(make_session(generate_key(), "job"));
    FAIL();
  } catch (const ProtocolError& error) {
    EXPECT_THAT(error.what(), HasSubstr("keys differ"));
    EXPECT_THAT(error.what(), HasSubstr("TRIREME_KEY"));
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
  }
  auto deadline = Deadline::in(5s);
  while (listener.reports().empty() && !deadline.passed()) std::this_thread::yield();
  ASSERT_EQ(listener.reports().size(), 1u);
  EXPECT_THAT(listener.reports()[0], HasSubstr("claims to be rank 1: the job keys differ"));
  EXPECT_EQ(listener.entered, 0);
}

TEST(Listener, AnotherJobAndAnotherSizeAreNamed) {
  Guarded listener({});
  auto text = [&](const Session& session, Link link) -> std::string {
    Place place{{listener.address}, session};
    try {
      connect_to([&] { return place; }, link, Deadline::in(5s));
    } catch (const ProtocolError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(text(make_session(listener.key, "another"), {Purpose::control, 1, 0, 4, 0}), HasSubstr("another job"));
  EXPECT_THAT(text(listener.session, {Purpose::control, 1, 0, 8, 0}), HasSubstr("(4 there, 8 here)"));
}

// Hundreds of strangers, silent or loud or gone again, hold every place; good peers get in without waiting for them.
TEST(Listener, GoodPeersGetInAmongStrangers) {
  Guarded listener({.patience = 5s, .places = 16, .grace = 50ms});
  std::vector<Fd> strangers;
  for (int i = 0; i < 300; ++i) {
    Fd fd = listener.stranger();
    ASSERT_TRUE(fd) << i;
    if (i % 3 == 0) ::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    if (i % 3 == 1) strangers.push_back(std::move(fd));
  }
  auto start = Clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(listener.call(listener.session, 10));
  EXPECT_LT(Clock::now() - start, 4s);
  EXPECT_LE(listener.most_visitors, 16u);
}

TEST(Dial, SaysWhatItFound) {
  auto message = [](const Address& address, double seconds) -> std::string {
    Place place{{address}, make_session(generate_key(), "job")};
    try {
      connect_to([&] { return place; }, {Purpose::control, 1, 0, 2, 0}, Deadline::in_seconds(seconds));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  Fd closed = listen_at(resolve("127.0.0.1", 0).front());
  Address nobody = local_address(closed.get());
  closed.close();
  EXPECT_THAT(message(nobody, 0.1), HasSubstr("refused"));
  Fd mute = listen_at(resolve("127.0.0.1", 0).front());
  EXPECT_THAT(message(local_address(mute.get()), 0.2), HasSubstr("no answer"));
  Fd web = listen_at(resolve("127.0.0.1", 0).front());
  std::jthread server([&] {
    wait_for(web.get(), POLLIN, Deadline::in(5s));
    Fd fd(::accept(web.get(), nullptr, nullptr));
    std::string page = "HTTP/1.1 400 Bad Request\r\n" + std::string(100, 'x');
    ::send(fd.get(), page.data(), page.size(), MSG_NOSIGNAL);
    std::this_thread::sleep_for(100ms);
  });
  EXPECT_THAT(message(local_address(web.get()), 5), HasSubstr("not a rank of trireme"));
}

}  // namespace
}  // namespace trireme::net
