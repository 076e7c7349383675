// SPDX-License-Identifier: Apache-2.0
#include "fake_nccl/sums.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fake_nccl {
namespace {

// A bf16 number: the upper half of an fp32.
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

template <class Number>
Number both(int operation, Number left, Number right) {
  if (operation == kMax) return std::max(left, right);
  if (operation == kMin) return std::min(left, right);
  return static_cast<Number>(left + right);
}

template <class Stored>
void reduction_of(int operation, const std::vector<const char*>& from, size_t count, char* to) {
  const auto number = [&](size_t rank, size_t at) {
    Stored one;
    std::memcpy(&one, from[rank] + at * sizeof(Stored), sizeof(Stored));
    return one.value();
  };
  for (size_t at = 0; at < count; ++at) {
    auto total = number(0, at);
    for (size_t rank = 1; rank < from.size(); ++rank)
      total = both(operation, total, number(rank, at));
    const Stored rounded = Stored::nearest(total);
    std::memcpy(to + at * sizeof(Stored), &rounded, sizeof(Stored));
  }
}

using Reduction = void (*)(int, const std::vector<const char*>&, size_t, char*);

struct Type {
  size_t bytes = 0;
  Reduction reduce = nullptr;
};

Type type_of(int type) {
  switch (type) {
    case 0:
      return {1, reduction_of<Plain<int8_t>>};
    case 1:
      return {1, reduction_of<Plain<uint8_t>>};
    case 2:
      return {4, reduction_of<Plain<int32_t>>};
    case 4:
      return {8, reduction_of<Plain<int64_t>>};
    case 6:
      return {2, reduction_of<Fp16>};
    case 7:
      return {4, reduction_of<Plain<float>>};
    case 8:
      return {8, reduction_of<Plain<double>>};
    case 9:
      return {2, reduction_of<Bf16>};
    default:
      return {};
  }
}

}  // namespace

size_t bytes_of_type(int type) { return type_of(type).bytes; }

void reduce(int type, int operation, const std::vector<const char*>& from, size_t count, char* to) {
  type_of(type).reduce(operation, from, count, to);
}

}  // namespace fake_nccl
