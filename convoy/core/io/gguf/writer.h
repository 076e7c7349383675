// SPDX-License-Identifier: Apache-2.0
//
// Writes a GGUF file, version 3, one tensor after another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/gguf/tensor_type.h"
#include "convoy/core/io/safetensors.h"

namespace convoy::gguf {

// Metadata in the order in which it was added, in the types that llama.cpp reads.
class Metadata {
 public:
  void text(const std::string& key, std::string_view value);
  void number(const std::string& key, int64_t value);  // uint32
  void real(const std::string& key, double value);     // float32
  void truth(const std::string& key, bool value);
  void texts(const std::string& key, const std::vector<std::string>& values);
  void truths(const std::string& key, const std::vector<bool>& values);
  void numbers(const std::string& key, const std::vector<int64_t>& values);  // int32
  void reals(const std::string& key, const std::vector<double>& values);     // float32

  uint64_t num_keys() const { return num_keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void begin(const std::string& key, uint32_t type);

  uint64_t num_keys_ = 0;
  std::string bytes_;
};

// `produce` is called once, in writing order, and passes the tensor's blocks in any number of
// pieces.
struct TensorToWrite {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<int64_t> shape;  // row-major
  std::function<void(const io::ByteSink& sink)> produce;

  int64_t num_bytes() const;
};

// Writes the file atomically. Throws IoError, and what producers throw.
void write_file(const std::filesystem::path& path, const Metadata& metadata,
                const std::vector<TensorToWrite>& tensors);

}  // namespace convoy::gguf
