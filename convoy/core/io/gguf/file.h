// SPDX-License-Identifier: Apache-2.0
//
// A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3 in
// little-endian: metadata by key, then the places of tensors. The file is not trusted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

// A list of numbers or of strings; truth values are 0 and 1.
struct List {
  std::vector<std::string> texts = {};
  std::vector<int64_t> integers = {};
  std::vector<double> reals = {};
  bool operator==(const List&) const = default;
};

// A float of 32 bits is stored as the double with the shortest decimal that names the float: 1e-05
// and not 9.999999747378752e-06.
using Value = std::variant<bool, int64_t, double, std::string, List>;

// A tensor as the file lists it, but `shape` is in row-major order, the reverse of the order in the
// file.
struct TensorPlace {
  std::string name;
  TensorType type = TensorType::F32;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // position in the file
  int64_t bytes = 0;

  int64_t num_rows() const;
  int64_t row_values() const;  // 1 for a tensor without dimensions
  int64_t row_bytes() const;
};

// A mapped file whose header passed every check: counts, lengths and sizes inside the file, UTF-8
// keys and texts, no name twice, no list of lists, tensors one after another at their alignment.
class File {
 public:
  explicit File(const std::filesystem::path& path);  // throws DataError

  const std::map<std::string, Value>& metadata() const { return metadata_; }
  const std::vector<TensorPlace>& tensors() const { return tensors_; }
  const TensorPlace* find_tensor(const std::string& name) const;
  const std::filesystem::path& path() const { return file_.path(); }

  // Typed reading. Errors name file and key. Returns nullopt or null when the key is absent.
  std::optional<int64_t> integer(const std::string& key, int64_t least, int64_t most) const;
  std::optional<double> real(const std::string& key) const;  // whole numbers are accepted too
  std::optional<bool> truth(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  const List* list(const std::string& key) const;
  int64_t require_integer(const std::string& key, int64_t least, int64_t most) const;
  std::string require_text(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

  // Reads with file calls, not from the mapped memory. Throws DataError when the file was cut
  // meanwhile.
  void read(int64_t offset, std::span<std::byte> out) const;
  std::span<const std::byte> stored(const TensorPlace& tensor) const;
  int descriptor() const { return file_.descriptor(); }

 private:
  friend class HeaderParser;
  const Value* find(const std::string& key) const;

  MappedFile file_;
  std::map<std::string, Value> metadata_;
  std::vector<TensorPlace> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
};

// The double with the shortest decimals that are this float: 1e-5 for 9.99999974737875164e-06.
double shortest_decimal(float value);

// True for a regular file whose name ends in ".gguf" or that begins with the format's mark.
bool is_gguf_file(const std::filesystem::path& path);

}  // namespace convoy::gguf
