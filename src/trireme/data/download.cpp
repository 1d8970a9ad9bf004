#include "trireme/data/download.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <thread>

#include "trireme/base/clock.h"
#include "trireme/base/error.h"

namespace trireme::data {
namespace {

class Download {
 public:
  Download(const std::string& address, const std::filesystem::path& to, const DownloadOptions& options,
           const std::function<void(std::uint64_t, std::uint64_t)>& progress)
      : address_(address),
        to_(to),
        options_(options),
        progress_(progress),
        file_(to, std::ios::binary | std::ios::trunc) {
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) curl_.reset(curl_easy_init());
    if (!curl_) throw Error("libcurl cannot be set up");
    if (!file_) throw Error(fmt::format("cannot write {}", to.string()));
  }

  void run() {
    const auto deadline = Deadline::in_seconds(options_.longest_s);
    double pause = options_.pause_s;
    for (int left = options_.tries - 1;; --left, pause *= 2) {
      const CURLcode code = attempt(deadline);
      if (failure_) std::rethrow_exception(failure_);
      if (code == CURLE_OK) break;
      if (code == CURLE_WRITE_ERROR) fail(why_not_written());
      if (left == 0 || deadline.passed() || !may_pass(code)) fail(reason(code));
      if (code == CURLE_RANGE_ERROR) start_again();
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
    file_.close();
    if (!file_) fail(why_not_written());
  }

 private:
  CURLcode attempt(const Deadline& deadline) {
    CURL* curl = curl_.get();
    curl_easy_reset(curl);
    message_[0] = 0;
    const auto seconds = [](double value) { return static_cast<long>(std::max(1.0, value)); };
    curl_easy_setopt(curl, CURLOPT_URL, address_.c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http,file");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https,http");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message_.data());
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trireme");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(std::max(1, deadline.left_ms())));
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, seconds(options_.stalled_s));
    curl_easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(written_));
    if (!options_.proxy.empty()) curl_easy_setopt(curl, CURLOPT_PROXY, options_.proxy.c_str());
    if (!options_.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_file.c_str());
    if (!options_.token.empty()) {
      curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
      curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, options_.token.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(
        curl, CURLOPT_WRITEFUNCTION, +[](char* bytes, std::size_t, std::size_t count, void* self) {
          return static_cast<Download*>(self)->take(bytes, count) ? count : 0;
        });
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
    curl_easy_setopt(
        curl, CURLOPT_XFERINFOFUNCTION, +[](void* self, curl_off_t all, curl_off_t, curl_off_t, curl_off_t) {
          return static_cast<Download*>(self)->tell(static_cast<std::uint64_t>(all)) ? 0 : 1;
        });
    return curl_easy_perform(curl);
  }

  bool take(const char* bytes, std::size_t count) {
    too_long_ = written_ + count > options_.most_bytes;
    if (too_long_) return false;
    file_.write(bytes, static_cast<std::streamsize>(count));
    written_ += count;
    return file_.good();
  }

  // libcurl is C: nothing may be thrown through it.
  bool tell(std::uint64_t rest) {
    try {
      if (progress_) progress_(written_, rest == 0 ? 0 : std::max(begun_ + rest, written_));
      return true;
    } catch (...) {
      failure_ = std::current_exception();
      return false;
    }
  }

  // Whether a further try may have more luck.
  bool may_pass(CURLcode code) {
    long status = 0;
    curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    begun_ = written_;
    switch (code) {
      case CURLE_HTTP_RETURNED_ERROR:
        return status == 408 || status == 429 || status >= 500;
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_PARTIAL_FILE:
      case CURLE_GOT_NOTHING:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        return true;
      case CURLE_RANGE_ERROR:
        return written_ > 0;
      default:
        return false;
    }
  }

  void start_again() {
    file_.close();
    file_.open(to_, std::ios::binary | std::ios::trunc);
    written_ = begun_ = 0;
  }

  std::string reason(CURLcode code) const { return message_[0] != 0 ? message_.data() : curl_easy_strerror(code); }
  std::string why_not_written() const {
    return too_long_ ? fmt::format("more than the {} bytes that it may have", options_.most_bytes)
                     : "its file cannot be written; is the disk full?";
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw DataError(fmt::format("cannot download {}: {}", address_, why));
  }

  const std::string& address_;
  const std::filesystem::path& to_;
  const DownloadOptions& options_;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress_;
  std::ofstream file_;
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl_{nullptr, curl_easy_cleanup};
  std::array<char, CURL_ERROR_SIZE> message_{};
  std::uint64_t written_ = 0, begun_ = 0;  // bytes; before this try
  bool too_long_ = false;
  std::exception_ptr failure_;
};

}  // namespace

void download(const std::string& address, const std::filesystem::path& to, const DownloadOptions& options,
              const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Download(address, to, options, progress).run();
}

}  // namespace trireme::data
