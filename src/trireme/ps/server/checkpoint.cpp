#include "trireme/ps/server/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "trireme/base/error.h"
#include "trireme/base/files/crc32c.h"
#include "trireme/net/fd.h"

namespace trireme::ps {
namespace {

// magic, bytes of the fields, bytes of the floats, CRC of all that follows.
struct FileHead {
  char magic[8] = {'t', 'p', 's', 'c', 'k', 'p', 't', '1'};
  std::uint64_t fields = 0, floats = 0;
  std::uint32_t crc = 0, unused = 0;
};

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
  head.crc = crc32c(body.data(), body.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + body;
}

void write_checkpoint(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::path fresh = path.string() + ".new";
  auto fail = [&](const char* what) {
    throw DataError(fmt::format("checkpoint {}: cannot {}: {}", path.string(), what, std::strerror(errno)));
  };
  {
    net::Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) fail("create it");
    for (std::size_t done = 0; done < bytes.size();) {
      ssize_t written = ::write(file.get(), bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno != EINTR) fail("write it");
      if (written > 0) done += static_cast<std::size_t>(written);
    }
    if (::fsync(file.get()) != 0) fail("write it");
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) fail("place it");
  if (net::Fd folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); folder) {
    ::fsync(folder.get());
  }
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
  if (std::memcmp(head.magic, expected.magic, sizeof head.magic) != 0) {
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
  auto crc = crc32c(floats.data(), head.floats, crc32c(fields.data(), fields.size()));
  if (!file || crc != head.crc) throw broken("its checksum is wrong");
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
