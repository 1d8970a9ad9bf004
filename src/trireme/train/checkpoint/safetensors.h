// Tensors in a file that Python, Rust and JavaScript read too: https://huggingface.co/docs/safetensors
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/train/checkpoint/safetensors_header.h"
#include "trireme/train/optimizers/optimizer.h"

namespace trireme::train {

// The key in the metadata under which the checksum of the whole file is kept; see docs/checkpoints.md.
constexpr std::string_view kChecksumKey = "trireme.xxh3";

// Atomic; one tensor at a time, without a copy of those that are contiguous on the CPU. Larger elements come first in
// the file, so that all are aligned; else in the order given. Throws Error as AtomicFile does, and DataError for a
// type the format does not have or a name that is there twice.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, Metadata metadata = {});

// A file whose header was read and found good. Throws DataError naming the file and the place. For one thread.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::filesystem::path path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  // As in the file, without the checksum.
  const Metadata& metadata() const { return header_.metadata; }
  bool has_checksum() const { return checksum_.has_value(); }

  // Reads this one alone, so that the checksum cannot be looked at.
  torch::Tensor read(std::string_view name) const;
  // All of them, in the order of the file, and checks the checksum where there is one.
  NamedTensors read_all() const;
  // Reads all and keeps nothing: throws where the checksum is wrong.
  void verify() const;

 private:
  void read_at(std::uint64_t offset, void* into, std::uint64_t bytes) const;
  torch::Tensor read_entry(const SafetensorsEntry& entry) const;
  void take_checksum(std::string& json);
  void compare(std::uint64_t found) const;

  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t data_start_ = 0, data_bytes_ = 0;
  SafetensorsHeader header_;
  std::optional<std::uint64_t> checksum_;  // as the file says
  std::string header_json_;                // with zeros in place of the checksum; empty where there is none
};

}  // namespace trireme::train
