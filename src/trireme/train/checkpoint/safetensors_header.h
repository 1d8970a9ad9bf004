// The JSON in front of a safetensors file: what tensors there are and where. https://huggingface.co/docs/safetensors
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::train {

using Metadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes, from where the data begins
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data
  Metadata metadata;
};

constexpr std::uint64_t kLongestHeader = 100'000'000;

// Bytes of one element; 0 where the format, or LibTorch, has no such type.
std::uint64_t safetensors_element_bytes(std::string_view dtype);

// Padded with spaces to a multiple of 8.
std::string format_safetensors_header(const SafetensorsHeader& header);

// Everything is checked: the tensors fill `data_bytes` in order, without a hole or an overlap, each as long as its
// shape and type say. Throws DataError naming `file` and the tensor or the byte.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes, const std::string& file);

// A name from a file, fit for one line of an error: quoted, control characters replaced, shortened.
std::string quoted_name(std::string_view name);

}  // namespace trireme::train
