#include "trireme/ps/server/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/files/atomic_file.h"
#include "trireme/base/files/checksum.h"
#include "trireme/base/files/crc32c.h"

namespace trireme::ps {
namespace {

// magic and version, bytes of the fields, bytes of the floats, checksum of all that follows. Version 1 had CRC-32C
// there.
struct FileHead {
  char magic[8] = {'t', 'p', 's', 'c', 'k', 'p', 't', '2'};
  std::uint64_t fields = 0, floats = 0, sum = 0;
};

std::uint64_t sum_of(char version, const std::string& fields, const std::vector<float>& floats) {
  const std::size_t bytes = floats.size() * sizeof(float);
  if (version == '1') return crc32c(floats.data(), bytes, crc32c(fields.data(), fields.size()));
  Checksum sum;
  sum.add(fields);
  sum.add(floats.data(), bytes);
  return sum.value();
}

}  // namespace

std::string checkpoint_bytes(std::uint64_t job, const Layout& layout,
                             const std::vector<std::shared_ptr<Shard>>& shards) {
  Packer fields;
  std::vector<std::span<const float>> floats;
  fields.put(job);
  layout.pack(fields);
  fields.count(shards.size());
  for (auto& shard : shards) shard->pack(fields, floats);
  std::string body = fields.take();
  FileHead head;
  head.fields = body.size();
  for (auto part : floats) {
    body.append(reinterpret_cast<const char*>(part.data()), part.size_bytes());
    head.floats += part.size_bytes();
  }
  head.sum = checksum(body.data(), body.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}

void write_checkpoint(const std::filesystem::path& path, const std::string& bytes) {
  write_atomically(path, bytes, 0600);
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  Checkpoint result;
  if (!std::filesystem::exists(path)) return result;
  auto broken = [&](std::string_view why) {
    return DataError(fmt::format("checkpoint {}: {}; remove it to begin without", path.string(), why));
  };
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  auto size = std::filesystem::file_size(path, error);
  FileHead head, expected;
  if (!file || error || size < sizeof head || !file.read(reinterpret_cast<char*>(&head), sizeof head)) {
    throw broken("it cannot be read");
  }
  const char version = head.magic[7];
  if (std::memcmp(head.magic, expected.magic, 7) != 0 || (version != '1' && version != '2')) {
    throw broken("it is no checkpoint of a parameter server");
  }
  size -= sizeof head;
  if (head.fields > size || head.floats != size - head.fields || head.floats % sizeof(float) != 0) {
    throw broken("it is longer or shorter than it says");
  }
  std::string fields(head.fields, 0);
  std::vector<float> floats(head.floats / sizeof(float));
  file.read(fields.data(), static_cast<std::streamsize>(fields.size()));
  file.read(reinterpret_cast<char*>(floats.data()), static_cast<std::streamsize>(head.floats));
  if (!file || sum_of(version, fields, floats) != head.sum) throw broken("its checksum is wrong");
  try {
    Unpacker from(fields);
    result.job = from.get<std::uint64_t>();
    result.layout = Layout::unpack(from);
    std::span<const float> rest = floats;
    for (std::size_t n = from.count(1); n > 0; --n) {
      auto count = Shard::floats_of(from);
      if (count > rest.size()) throw broken("a shard is longer than the file");
      result.shards.push_back(Shard::unpack(from, rest.first(count)));
      rest = rest.subspan(count);
    }
  } catch (const ProtocolError& wrong) {
    throw broken(wrong.what());
  }
  return result;
}

void CheckpointWriter::begin(std::filesystem::path path, std::string bytes) {
  finish();
  thread_ = std::jthread([this, path = std::move(path), bytes = std::move(bytes)] {
    try {
      write_checkpoint(path, bytes);
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

void CheckpointWriter::finish() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace trireme::ps
