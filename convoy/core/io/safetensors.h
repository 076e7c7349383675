// SPDX-License-Identifier: Apache-2.0
//
// The safetensors format, https://github.com/huggingface/safetensors: u64 little-endian header
// length, a JSON header that begins with '{' and may end in spaces, then the data. Views hold
// bytes; the layer `models` makes tensors from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "convoy/core/base/files.h"

namespace convoy::io {

// The types in the order of the reference library, whose writer puts tensors of later types first.
enum class Dtype {
  Bool,
  U8,
  I8,
  F8E5M2,
  F8E4M3,
  F8E8M0,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};

int64_t dtype_bytes(Dtype dtype);
std::string_view dtype_name(Dtype dtype);  // "F32", "BF16", "F8_E4M3"

// Values that a file stores as codes, or in an order other than row-major.
class StoredElements {
 public:
  virtual ~StoredElements() = default;
  // Reads as many elements as fill `out`, from element `begin` on, in row-major order and in the
  // view's type. Throws DataError.
  virtual void read(int64_t begin, std::span<std::byte> out) const = 0;
};

// Valid as long as the file that returned it.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  // Descriptor of the open file, or -1 if the bytes are in memory only; and the offset of the bytes
  // in the file.
  int descriptor = -1;
  int64_t file_offset = 0;
  // Not null: `bytes` are in the file's own form, and only `stored` can turn them into elements.
  const StoredElements* stored = nullptr;
  int64_t first_element = 0;  // where this tensor begins in `stored`

  int64_t num_elements() const;
  // Part of the flattened tensor, as a view of shape [count].
  TensorView elements(int64_t begin, int64_t count) const;
};

// Copies the elements into `destination`, which has their size. Throws DataError when the file was
// truncated meanwhile; reading `bytes` directly would then end the process by SIGBUS.
void copy_bytes(const TensorView& view, std::span<std::byte> destination);

// A mapped file whose header passed every check: length <= 100 MB and inside the file, UTF-8 JSON
// of depth <= 8, no duplicate names, <= 1M tensors of <= 8 dims, size = shape x dtype, data
// contiguous from 0 to the end of the file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);  // throws DataError

  const std::vector<TensorView>& tensors() const { return tensors_; }  // in the order of the data
  const TensorView* find(const std::string& name) const;               // nullptr when absent
  const TensorView& require(const std::string& name) const;            // throws DataError
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string, size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// One tensor to write. `produce` is called once, in writing order. It must pass shape x dtype
// bytes, little-endian and row-major, to the sink in any number of pieces, so that a large tensor
// need never be in memory whole.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<int64_t> shape;
  std::function<void(const ByteSink& sink)> produce;

  int64_t num_bytes() const;  // throws StateError when negative or beyond 2^63
};

// A source over bytes, which must outlive the write.
TensorSource tensor_source(std::string name, Dtype dtype, std::vector<int64_t> shape,
                           std::span<const std::byte> bytes);

using Metadata = std::map<std::string, std::string>;

// Passes the bytes of the file, in order, to `sink`. Equal tensors give equal bytes, the same as
// the reference library writes: sorted by dtype, then name. Throws what `sink` throws, and
// StateError when a producer passes a wrong number of bytes or two tensors share a name.
void stream_safetensors(std::vector<TensorSource> tensors, const ByteSink& sink,
                        const Metadata& metadata = {{"format", "pt"}});

// Writes the same bytes to a file, atomically. Also throws IoError.
void write_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                       const Metadata& metadata = {{"format", "pt"}});

}  // namespace convoy::io
