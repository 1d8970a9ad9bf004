// Arrays of NumPy: .npy; .npz is a ZIP of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/data/input.h"

namespace trireme::data {

struct Array {
  std::string type;  // as NumPy writes it: "|u1", "<f4"
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;

  std::int64_t size() const;
};

// `where` names the array in errors; `bytes` is the whole of it.
Array parse_npy(const std::filesystem::path& where, std::span<const std::uint8_t> bytes);

}  // namespace trireme::data
