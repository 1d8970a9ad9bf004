// metrics.jsonl: one JSON object per line, appended while the run goes on.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace trireme::train {

// For one thread. Throws Error naming the file where it cannot be written.
class MetricsFile {
 public:
  // Begins an empty file; or, for a run that goes on from step `resumed`, keeps the lines there are, without those
  // whose "step" is later and without what is no JSON object, such as a last line cut short by a crash.
  explicit MetricsFile(std::filesystem::path path, std::optional<std::int64_t> resumed = std::nullopt);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  // In the file, as a whole line, when it returns. Numbers that are not finite become null.
  void append(const nlohmann::json& line);

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace trireme::train
