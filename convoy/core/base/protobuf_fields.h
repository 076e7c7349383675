// SPDX-License-Identifier: Apache-2.0
//
// Fields of Protocol Buffers messages (protobuf.dev/programming-guides/encoding), appended to a
// text that becomes the message. A message within a message is a bytes field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy {

void put_fixed32(std::string& out, uint32_t value);  // without a key, little endian
void put_fixed64(std::string& out, uint64_t value);
void put_varint(std::string& out, uint64_t value);

void put_integer(std::string& out, uint64_t field, int64_t value);
void put_double(std::string& out, uint64_t field, double value);
void put_float(std::string& out, uint64_t field, float value);
void put_bytes(std::string& out, uint64_t field, std::string_view bytes);

}  // namespace convoy
