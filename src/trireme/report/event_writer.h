// Scalars for TensorBoard: an event file that `tensorboard --logdir DIR` reads while it grows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace trireme::train {

// For one thread. Throws Error naming the file where it cannot be written.
class EventWriter {
 public:
  // Makes DIR/events.out.tfevents.<seconds>.<host>. A run that goes on from `resumed` tells readers to drop what
  // earlier files of the folder say of later steps.
  explicit EventWriter(const std::filesystem::path& folder, std::optional<std::int64_t> resumed = std::nullopt);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // `wall_time` in seconds since 1970; now where it is left out. In the file when it returns.
  void scalar(std::string_view tag, double value, std::int64_t step, std::optional<double> wall_time = std::nullopt);
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(std::string_view event);
  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace trireme::train
