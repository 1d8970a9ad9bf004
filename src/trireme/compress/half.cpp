#include "trireme/compress/half.h"

#include <bit>

#include "trireme/compress/check.h"

namespace trireme::compress {
namespace {

float largest(DType type) { return type == DType::f16 ? 65504.0f : std::bit_cast<float>(0x7f7f0000u); }

// The largest of the type that is not above x, where that is a normal number of the type: its lower bits cut off.
float floor_to(DType type, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & (type == DType::f16 ? ~0x1fffu : ~0xffffu));
}

}  // namespace

HalfCodec::HalfCodec(DType type, std::size_t count, int workers)
    : type_(type),
      count_(count),
      most_(largest(type)),
      most_term_(floor_to(type, most_ / static_cast<float>(workers))) {}

std::size_t HalfCodec::encode(std::size_t, std::span<const float> x, std::byte* message, float* left) {
  if (!kernels::halve(type_, x.data(), x.size(), most_, message, left)) check_finite(x);
  return most_bytes(x.size());
}

void HalfCodec::decode(std::span<const std::byte> message, std::span<float> out) const {
  check_length(type_ == DType::f16 ? "fp16" : "bf16", message, most_bytes(out.size()));
  kernels::widen(type_, message.data(), out.size(), out.data());
}

void HalfCodec::add(std::span<const std::byte> message, float factor, std::span<float> out) const {
  check_length(type_ == DType::f16 ? "fp16" : "bf16", message, most_bytes(out.size()));
  kernels::widen_add(type_, message.data(), out.size(), factor, out.data());
}

void HalfCodec::give(int, std::span<const float> x, std::byte* terms) {
  if (!kernels::halve(type_, x.data(), x.size(), most_term_, terms, nullptr)) check_finite(x);
}

void HalfCodec::take(int, const std::byte* means, std::span<float> out) {
  kernels::widen(type_, means, out.size(), out.data());
}

void HalfCodec::leave(std::span<float> x) const {
  kernels::halve(type_, x.data(), x.size(), most_term_, nullptr, x.data());
}

}  // namespace trireme::compress
