// SPDX-License-Identifier: Apache-2.0
#include "fake_nccl/sums.h"

#include <cstdint>
#include <cstring>

namespace fake_nccl {
namespace {

// The upper half of an fp32.
struct Bf16 {
  uint16_t bits;

  float value() const {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float found;
    std::memcpy(&found, &wide, sizeof(found));
    return found;
  }
  static Bf16 nearest(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof(wide));
    if (value != value) return {0x7fc0};
    const uint32_t to_even = 0x7fff + ((wide >> 16) & 1);
    return {static_cast<uint16_t>((wide + to_even) >> 16)};
  }
};

struct Fp16 {
  _Float16 bits;

  float value() const { return static_cast<float>(bits); }
  static Fp16 nearest(float value) { return {static_cast<_Float16>(value)}; }
};

template <class Number>
struct Plain {
  Number bits;

  Number value() const { return bits; }
  static Plain nearest(Number value) { return {value}; }
};

template <class Stored>
void sum_of(const std::vector<const char*>& from, size_t count, char* to) {
  for (size_t at = 0; at < count; ++at) {
    decltype(Stored().value()) total = 0;
    for (const char* const numbers : from) {
      Stored one;
      std::memcpy(&one, numbers + at * sizeof(Stored), sizeof(Stored));
      total = static_cast<decltype(total)>(total + one.value());
    }
    const Stored rounded = Stored::nearest(total);
    std::memcpy(to + at * sizeof(Stored), &rounded, sizeof(Stored));
  }
}

using Sum = void (*)(const std::vector<const char*>&, size_t, char*);

struct Type {
  size_t bytes = 0;
  Sum sum = nullptr;
};

Type type_of(int type) {
  switch (type) {
    case 0:
      return {1, sum_of<Plain<int8_t>>};
    case 1:
      return {1, sum_of<Plain<uint8_t>>};
    case 2:
      return {4, sum_of<Plain<int32_t>>};
    case 4:
      return {8, sum_of<Plain<int64_t>>};
    case 6:
      return {2, sum_of<Fp16>};
    case 7:
      return {4, sum_of<Plain<float>>};
    case 8:
      return {8, sum_of<Plain<double>>};
    case 9:
      return {2, sum_of<Bf16>};
    default:
      return {};
  }
}

}  // namespace

size_t bytes_of_type(int type) { return type_of(type).bytes; }

void sum(int type, const std::vector<const char*>& from, size_t count, char* to) {
  type_of(type).sum(from, count, to);
}

}  // namespace fake_nccl
