// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/writer.h"

#include <bit>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/value_type.h"

namespace convoy::gguf {
namespace {

constexpr int64_t kAlignment = 32;

void append_unsigned(std::string& bytes, uint64_t value, size_t size) {
  for (size_t index = 0; index < size; ++index)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> (8 * index)));
}

void append_text(std::string& bytes, std::string_view text) {
  append_unsigned(bytes, text.size(), 8);
  bytes += text;
}

void append_float(std::string& bytes, double value) {
  append_unsigned(bytes, std::bit_cast<uint32_t>(static_cast<float>(value)), 4);
}

void append_list(std::string& bytes, uint32_t type, size_t count) {
  append_unsigned(bytes, type, 4);
  append_unsigned(bytes, count, 8);
}

int64_t padding(int64_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

}  // namespace

void Metadata::begin(const std::string& key, uint32_t type) {
  append_text(bytes_, key);
  append_unsigned(bytes_, type, 4);
  ++num_keys_;
}

void Metadata::text(const std::string& key, std::string_view value) {
  begin(key, kTextType);
  append_text(bytes_, value);
}

void Metadata::number(const std::string& key, int64_t value) {
  CONVOY_INVARIANT(value >= 0 && value <= int64_t{UINT32_MAX}, "{} is {}", key, value);
  begin(key, kUint32Type);
  append_unsigned(bytes_, static_cast<uint64_t>(value), 4);
}

void Metadata::real(const std::string& key, double value) {
  begin(key, kFloat32Type);
  append_float(bytes_, value);
}

void Metadata::truth(const std::string& key, bool value) {
  begin(key, kTruthType);
  append_unsigned(bytes_, value ? 1 : 0, 1);
}

void Metadata::texts(const std::string& key, const std::vector<std::string>& values) {
  begin(key, kListType);
  append_list(bytes_, kTextType, values.size());
  for (const std::string& value : values) append_text(bytes_, value);
}

void Metadata::truths(const std::string& key, const std::vector<bool>& values) {
  begin(key, kListType);
  append_list(bytes_, kTruthType, values.size());
  for (const bool value : values) append_unsigned(bytes_, value ? 1 : 0, 1);
}

void Metadata::numbers(const std::string& key, const std::vector<int64_t>& values) {
  begin(key, kListType);
  append_list(bytes_, kInt32Type, values.size());
  for (const int64_t value : values) append_unsigned(bytes_, static_cast<uint64_t>(value), 4);
}

void Metadata::reals(const std::string& key, const std::vector<double>& values) {
  begin(key, kListType);
  append_list(bytes_, kFloat32Type, values.size());
  for (const double value : values) append_float(bytes_, value);
}

int64_t TensorToWrite::num_bytes() const {
  const TensorTypeInfo& info = info_of(type);
  int64_t values = 1;
  for (const int64_t size : shape) values *= size;
  return values / info.block_values * info.block_bytes;
}

void write_file(const std::filesystem::path& path, const Metadata& metadata,
                const std::vector<TensorToWrite>& tensors) {
  std::string header = "GGUF";
  append_unsigned(header, 3, 4);
  append_unsigned(header, tensors.size(), 8);
  append_unsigned(header, metadata.num_keys(), 8);
  header += metadata.bytes();
  int64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    append_text(header, tensor.name);
    append_unsigned(header, tensor.shape.size(), 4);
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append_unsigned(header, static_cast<uint64_t>(*size), 8);
    append_unsigned(header, static_cast<uint32_t>(tensor.type), 4);
    append_unsigned(header, static_cast<uint64_t>(offset), 8);
    offset += tensor.num_bytes() + padding(tensor.num_bytes());
  }
  header.append(static_cast<size_t>(padding(std::ssize(header))), '\0');

  AtomicFile file(path);
  file.write(header);
  for (const TensorToWrite& tensor : tensors) {
    int64_t written = 0;
    tensor.produce([&](std::span<const std::byte> bytes) {
      written += std::ssize(bytes);
      file.write(bytes);
    });
    CONVOY_INVARIANT(written == tensor.num_bytes(), "tensor {}: {} bytes produced, {} wanted",
                     tensor.name, written, tensor.num_bytes());
    file.write(std::string(static_cast<size_t>(padding(written)), '\0'));
  }
  file.commit();
}

}  // namespace convoy::gguf
