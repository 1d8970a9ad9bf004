#include "trireme/data/download.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "tests/data/files.h"

namespace trireme::data::download_test {
namespace {

// Gives one prepared answer to each connection, then closes it; keeps what was asked.
class Server {
 public:
  explicit Server(std::vector<std::string> answers) : answers_(std::move(answers)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(socket_, 8) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      throw std::runtime_error("no server on the loopback");
    }
    address_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port)) + "/a.tgz";
    thread_ = std::jthread([this] { serve(); });
  }
  ~Server() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  const std::string& address() const { return address_; }
  // Once the download is over.
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  void serve() {
    for (const auto& answer : answers_) {
      const int link = ::accept(socket_, nullptr, nullptr);
      if (link < 0) return;
      std::string text;
      for (char byte; !text.ends_with("\r\n\r\n") && ::read(link, &byte, 1) == 1;) text += byte;
      asked_.push_back(text);
      if (answer.empty()) {
        for (char byte; ::read(link, &byte, 1) == 1;) {  // silence, until the other gives up
        }
      }
      (void)!::send(link, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(link);
    }
  }
  std::vector<std::string> answers_, asked_;
  std::string address_;
  int socket_ = -1;
  std::jthread thread_;
};

std::string reply(const std::string& status, std::size_t length, const std::string& body,
                  const std::string& more = "") {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " + std::to_string(length) + "\r\n" + more +
         "\r\n" + body;
}

struct Downloads : testing::Test {
  Downloads() {
    setenv("no_proxy", "*", 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>('a' + i * 7 % 26);
  }
  // What was wrong; empty: the file came.
  std::string get(const std::string& address) {
    try {
      download(address, folder / "a", options, [&](std::uint64_t done, std::uint64_t all) {
        EXPECT_TRUE(all == 0 || done <= all);
        seen = done;
      });
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "";
  }
  Folder folder;
  DownloadOptions options{.most_bytes = 1 << 20, .longest_s = 20, .pause_s = 0.01};
  std::string bytes = std::string(100'000, ' ');
  std::uint64_t seen = 0;
};

TEST_F(Downloads, GoOnWhereTheyBroke) {
  const auto rest = bytes.substr(40'000);
  Server server({reply("200 OK", bytes.size(), bytes.substr(0, 40'000)), reply("503 Busy", 0, ""),
                 reply("206 Partial Content", rest.size(), rest, "Content-Range: bytes 40000-99999/100000\r\n")});
  EXPECT_EQ(get(server.address()), "");
  EXPECT_EQ(slurp(folder / "a"), bytes);
  EXPECT_EQ(seen, bytes.size());
  ASSERT_EQ(server.asked().size(), 3u);
  EXPECT_EQ(server.asked()[0].find("Range:"), std::string::npos);
  EXPECT_NE(server.asked()[2].find("Range: bytes=40000-"), std::string::npos);
}

TEST_F(Downloads, BeginAnewWhereTheServerCannotGoOn) {
  Server server({reply("200 OK", bytes.size(), bytes.substr(0, 40'000)), reply("200 OK", bytes.size(), bytes),
                 reply("200 OK", bytes.size(), bytes)});
  EXPECT_EQ(get(server.address()), "");
  EXPECT_EQ(slurp(folder / "a"), bytes);
}

TEST_F(Downloads, AreNotTriedAgainWhereThatCannotHelp) {
  Server server({reply("404 Not Found", 4, "none"), reply("200 OK", bytes.size(), bytes)});
  EXPECT_EQ(get(server.address()), "cannot download " + server.address() + ": The requested URL returned error: 404");
  EXPECT_EQ(server.asked().size(), 1u);
  EXPECT_EQ(slurp(folder / "a"), "");
}

TEST_F(Downloads, EndAtTheirLimits) {
  options.most_bytes = 99'999;
  Server longer({reply("200 OK", bytes.size(), bytes)});
  EXPECT_NE(get(longer.address()).find("more than the 99999 bytes"), std::string::npos);
  options = {.most_bytes = 1 << 20, .longest_s = 0.3, .pause_s = 0.01};
  Server silent({""});
  EXPECT_NE(get(silent.address()).find("imed out"), std::string::npos);
}

TEST_F(Downloads, SendTheTokenTheyHave) {
  options.token = "secret";
  Server server({reply("200 OK", bytes.size(), bytes)});
  EXPECT_EQ(get(server.address()), "");
  EXPECT_NE(server.asked().at(0).find("Authorization: Bearer secret"), std::string::npos);
}

TEST_F(Downloads, AFileWillDo) {
  write(folder / "b", bytes);
  EXPECT_EQ(get("file://" + (folder / "b").string()), "");
  EXPECT_EQ(slurp(folder / "a"), bytes);
  EXPECT_NE(get("file://" + (folder / "none").string()), "");
  EXPECT_NE(get("gopher://127.0.0.1/"), "");
}

}  // namespace
}  // namespace trireme::data::download_test
