// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/protobuf_fields.h"

#include <array>
#include <bit>

namespace convoy {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed fields are little endian");

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class Number>
void put_fixed(std::string& out, Number value) {
  const auto bytes = std::bit_cast<std::array<char, sizeof(Number)>>(value);
  out.append(bytes.data(), bytes.size());
}

void put_key(std::string& out, uint64_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

}  // namespace

void put_fixed32(std::string& out, uint32_t value) { put_fixed(out, value); }
void put_fixed64(std::string& out, uint64_t value) { put_fixed(out, value); }

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>((value & 0x7f) | 0x80));
  out.push_back(static_cast<char>(value));
}

void put_integer(std::string& out, uint64_t field, int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_double(std::string& out, uint64_t field, double value) {
  put_key(out, field, kFixed64);
  put_fixed(out, value);
}

void put_float(std::string& out, uint64_t field, float value) {
  put_key(out, field, kFixed32);
  put_fixed(out, value);
}

void put_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out.append(bytes);
}

}  // namespace convoy
