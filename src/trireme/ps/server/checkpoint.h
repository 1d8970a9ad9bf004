// A server's shards in a file. It is replaced whole or not at all.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trireme/ps/server/shard.h"

namespace trireme::ps {

// Shards as bytes: they may change while these are written.
std::string checkpoint_bytes(std::uint64_t job, const Layout& layout,
                             const std::vector<std::shared_ptr<Shard>>& shards);

struct Checkpoint {
  std::uint64_t job = 0;
  Layout layout;
  std::vector<std::shared_ptr<Shard>> shards;
};
// Nothing there: no shards. Throws DataError that names the file when it is broken.
Checkpoint read_checkpoint(const std::filesystem::path& path);
void write_checkpoint(const std::filesystem::path& path, const std::string& bytes);

// Writes one at a time on a thread of its own.
class CheckpointWriter {
 public:
  // Waits for the one before. A failure to write is thrown by the next call.
  void begin(std::filesystem::path path, std::string bytes);
  void finish();

 private:
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace trireme::ps
