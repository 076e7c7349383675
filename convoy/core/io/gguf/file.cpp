// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/io/gguf/value_type.h"

namespace convoy::gguf {
namespace {

constexpr std::string_view kMark = "GGUF";
constexpr uint64_t kMostKeys = 65'536;
constexpr uint64_t kMostTensors = 1'000'000;
constexpr uint64_t kMostDims = 4;  // as in ggml
constexpr uint64_t kMostKeyBytes = 65'535;
constexpr int64_t kMostAlignment = 1 << 20;
constexpr int64_t kDefaultAlignment = 32;

constexpr const char* kGetAgain = "the file is damaged or cut: get it again";

}  // namespace

double shortest_decimal(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double number = value;
  std::from_chars(text.data(), written.ptr, number);
  return number;
}

// Reads the header. Every step first checks that its bytes are there.
class HeaderParser {
 public:
  explicit HeaderParser(File& file) : file_(file), bytes_(file.file_.bytes()) {}

  void parse() {
    read_start();
    for (uint64_t index = 0; index < num_keys_; ++index) read_pair(index);
    place_ = "tensors";
    for (uint64_t index = 0; index < num_tensors_; ++index) read_tensor(index);
    place_tensors();
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = kGetAgain) const {
    throw DataError(place_.empty() ? message : fmt::format("{}: {}", place_, message),
                    {.file = file_.path().string(), .key = key_, .hint = hint});
  }

  std::span<const std::byte> take(uint64_t count) {
    if (count > bytes_.size() - at_)
      fail(fmt::format("{} bytes wanted at byte {}, but the file ends at byte {}", count, at_,
                       bytes_.size()),
           "the file was cut or is damaged; fetch it again");
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  uint64_t take_unsigned(size_t size) {
    uint64_t value = 0;
    const auto taken = take(size);
    for (size_t index = 0; index < size; ++index)
      value |= std::to_integer<uint64_t>(taken[index]) << (8 * index);
    return value;
  }

  std::string take_text(uint64_t most) {
    const uint64_t length = take_unsigned(8);
    if (length > most) fail(fmt::format("a text of {} bytes at byte {}", length, at_));
    const auto taken = take(length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  // Called for texts that are shown to people or become part of JSON.
  void require_utf8(const std::string& text) const {
    if (find_invalid_utf8(text)) fail("a text is no UTF-8");
  }

  void read_start() {
    if (bytes_.size() < kMark.size() || std::memcmp(bytes_.data(), kMark.data(), kMark.size()) != 0)
      fail("not a GGUF file: it does not begin with `GGUF`",
           "the file is damaged or of another format; a git-lfs pointer is fetched by `git lfs "
           "pull`");
    at_ = kMark.size();
    const auto version = static_cast<uint32_t>(take_unsigned(4));
    if ((version & 0xffffu) == 0)
      fail("a big-endian GGUF file; only little-endian ones are read",
           "convert it with `gguf-convert-endian` of the Python package gguf");
    if (version != 2 && version != 3)
      fail(fmt::format("version {} of GGUF; 2 and 3 are read", version),
           "take the model in Hugging Face layout");
    num_tensors_ = take_unsigned(8);
    num_keys_ = take_unsigned(8);
    // A key takes at least 13 bytes, a tensor at least 24 bytes.
    const uint64_t left = bytes_.size() - at_;
    if (num_keys_ > kMostKeys || num_keys_ > left / 13)
      fail(fmt::format("{} keys of metadata in a file of {} bytes", num_keys_, bytes_.size()));
    if (num_tensors_ > kMostTensors || num_tensors_ > left / 24)
      fail(fmt::format("{} tensors in a file of {} bytes", num_tensors_, bytes_.size()));
  }

  void read_pair(uint64_t index) {
    place_ = fmt::format("metadata {}", index);
    key_.clear();
    std::string key = take_text(kMostKeyBytes);
    if (key.empty() || key.find('\0') != std::string::npos) fail("a key that is no name");
    require_utf8(key);
    key_ = key;
    place_ = fmt::format("metadata `{:.200}`", key);
    const auto type = static_cast<uint32_t>(take_unsigned(4));
    Value value = type == kListType ? Value(take_list()) : take_value(type);
    if (!file_.metadata_.emplace(std::move(key), std::move(value)).second)
      fail("the key stands twice");
  }

  Value take_value(uint32_t type) {
    if (type == kTextType) {
      std::string text = take_text(bytes_.size());
      require_utf8(text);
      return text;
    }
    const size_t size = value_bytes(type);
    if (size == 0) fail(fmt::format("a value of the unknown type {}", type));
    const uint64_t bits = take_unsigned(size);
    if (type == kTruthType) {
      if (bits > 1) fail(fmt::format("a truth value of {}", bits));
      return bits == 1;
    }
    if (type == kFloat32Type)
      return shortest_decimal(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    if (type == kFloat64Type) return std::bit_cast<double>(bits);
    return whole(type, bits, size);
  }

  int64_t whole(uint32_t type, uint64_t bits, size_t size) const {
    if (is_signed(type)) {
      const auto shift = static_cast<int>(64 - 8 * size);
      return static_cast<int64_t>(bits << shift) >> shift;
    }
    if (bits > uint64_t{INT64_MAX}) fail(fmt::format("{} is out of range", bits));
    return static_cast<int64_t>(bits);
  }

  List take_list() {
    const auto type = static_cast<uint32_t>(take_unsigned(4));
    const uint64_t count = take_unsigned(8);
    if (type == kListType)
      fail("a list of lists; no key that is read has one",
           "the file is damaged, or made by another program than llama.cpp's");
    const size_t least = type == kTextType ? 8 : value_bytes(type);
    if (least == 0) fail(fmt::format("a list of the unknown type {}", type));
    if (count > (bytes_.size() - at_) / least)
      fail(fmt::format("a list of {} values, beyond the end of the file", count));
    List list;
    for (uint64_t index = 0; index < count; ++index) {
      Value value = take_value(type);
      if (auto* text = std::get_if<std::string>(&value))
        list.texts.push_back(std::move(*text));
      else if (const double* real = std::get_if<double>(&value))
        list.reals.push_back(*real);
      else if (const bool* truth = std::get_if<bool>(&value))
        list.integers.push_back(*truth ? 1 : 0);
      else
        list.integers.push_back(std::get<int64_t>(value));
    }
    return list;
  }

  void read_tensor(uint64_t index) {
    place_ = fmt::format("tensor {}", index);
    key_.clear();
    TensorPlace tensor;
    tensor.name = take_text(kMostKeyBytes);
    if (tensor.name.empty() || tensor.name.find('\0') != std::string::npos)
      fail("a name that is none");
    require_utf8(tensor.name);
    key_ = tensor.name;
    place_ = fmt::format("tensor `{:.200}`", tensor.name);
    const uint64_t num_dims = take_unsigned(4);
    if (num_dims > kMostDims) fail(fmt::format("{} dims, more than {}", num_dims, kMostDims));
    int64_t values = 1;
    for (uint64_t dim = 0; dim < num_dims; ++dim) {
      const uint64_t size = take_unsigned(8);
      if (size == 0 || size > uint64_t{INT64_MAX} ||
          __builtin_mul_overflow(values, static_cast<int64_t>(size), &values))
        fail(fmt::format("a size of {}", size));
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    const auto number = static_cast<uint32_t>(take_unsigned(4));
    const TensorTypeInfo* const type = find_tensor_type(number);
    if (type == nullptr)
      fail(fmt::format("values in {}, which Convoy does not read", tensor_type_name(number)),
           "take the model in q8_0, q6_k, q5_k, q4_k, another type of `convoy models export "
           "--help`, or f16");
    tensor.type = type->type;
    if (tensor.row_values() % type->block_values != 0)
      fail(fmt::format("rows of {} values, not a multiple of {}'s {}", tensor.row_values(),
                       type->name, type->block_values));
    if (__builtin_mul_overflow(values / type->block_values, type->block_bytes, &tensor.bytes))
      fail("more bytes than there can be");
    const uint64_t offset = take_unsigned(8);
    if (offset > bytes_.size()) fail(fmt::format("begins at byte {} of the data", offset));
    tensor.offset = static_cast<int64_t>(offset);
    if (!file_.by_name_.emplace(tensor.name, file_.tensors_.size()).second)
      fail("two tensors have this name");
    file_.tensors_.push_back(std::move(tensor));
  }

  // Makes the offsets in the header offsets in the file. In the header they count from the first
  // multiple of the alignment after it.
  void place_tensors() {
    place_.clear();
    key_ = "general.alignment";
    const int64_t alignment =
        file_.integer("general.alignment", 8, kMostAlignment).value_or(kDefaultAlignment);
    if (!std::has_single_bit(static_cast<uint64_t>(alignment)))
      fail(fmt::format("general.alignment: {} is no power of two", alignment));
    const auto up = [alignment](int64_t bytes) {
      return (bytes + alignment - 1) / alignment * alignment;
    };
    const int64_t begin = up(static_cast<int64_t>(at_));
    const auto size = static_cast<int64_t>(bytes_.size());
    int64_t expected = 0;
    for (TensorPlace& tensor : file_.tensors_) {
      key_ = tensor.name;
      place_ = fmt::format("tensor `{:.200}`", tensor.name);
      if (tensor.offset != expected)
        fail(fmt::format("begins at byte {} of the data, wanted {}: a {}", tensor.offset, expected,
                         tensor.offset > expected ? "hole" : "overlap"));
      // Only in a file without tensors may `begin` lie after the end.
      if (tensor.bytes > size - begin - tensor.offset)
        fail(fmt::format("ends at byte {} of the file, which has {}",
                         begin + tensor.offset + tensor.bytes, size),
             "the file was cut; fetch it again");
      expected = up(tensor.offset + tensor.bytes);
      tensor.offset += begin;
    }
  }

  File& file_;
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t num_tensors_ = 0;
  uint64_t num_keys_ = 0;
  std::string place_;
  std::string key_;
};

int64_t TensorPlace::row_values() const { return shape.empty() ? 1 : shape.back(); }

int64_t TensorPlace::num_rows() const {
  int64_t rows = 1;
  for (size_t dim = 0; dim + 1 < shape.size(); ++dim) rows *= shape[dim];
  return rows;
}

int64_t TensorPlace::row_bytes() const {
  const TensorTypeInfo& info = info_of(type);
  return row_values() / info.block_values * info.block_bytes;
}

File::File(const std::filesystem::path& path) : file_(path) { HeaderParser(*this).parse(); }

const TensorPlace* File::find_tensor(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const Value* File::find(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

void File::fail(const std::string& key, const std::string& message) const {
  throw DataError(fmt::format("{}: {}", key, message),
                  {.file = path().string(),
                   .key = key,
                   .hint = "the file's writer left it so: get a file of another source, or the "
                           "model in Hugging Face layout"});
}

std::optional<int64_t> File::integer(const std::string& key, int64_t least, int64_t most) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const int64_t* const number = std::get_if<int64_t>(value);
  if (number == nullptr) fail(key, "wanted a whole number");
  if (*number < least || *number > most)
    fail(key, fmt::format("wanted a number from {} to {}, found {}", least, most, *number));
  return *number;
}

std::optional<double> File::real(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const int64_t* const whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  const double* const number = std::get_if<double>(value);
  if (number == nullptr || !std::isfinite(*number)) fail(key, "wanted a finite number");
  return *number;
}

std::optional<bool> File::truth(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const bool* const truth = std::get_if<bool>(value);
  if (truth == nullptr) fail(key, "wanted true or false");
  return *truth;
}

std::optional<std::string> File::text(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string* const text = std::get_if<std::string>(value);
  if (text == nullptr) fail(key, "wanted a text");
  return *text;
}

const List* File::list(const std::string& key) const {
  const Value* const value = find(key);
  if (value == nullptr) return nullptr;
  const List* const list = std::get_if<List>(value);
  if (list == nullptr) fail(key, "wanted a list");
  return list;
}

int64_t File::require_integer(const std::string& key, int64_t least, int64_t most) const {
  const std::optional<int64_t> value = integer(key, least, most);
  if (!value) fail(key, "is missing");
  return *value;
}

std::string File::require_text(const std::string& key) const {
  std::optional<std::string> value = text(key);
  if (!value) fail(key, "is missing");
  return *std::move(value);
}

void File::read(int64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(descriptor(), out.data() + done, out.size() - done,
                                  offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw DataError(
          fmt::format("read {} of {} bytes; the file was cut while in use", done, out.size()),
          {.file = path().string(), .hint = "run this again when nothing writes to the file"});
    done += static_cast<size_t>(count);
  }
}

std::span<const std::byte> File::stored(const TensorPlace& tensor) const {
  return file_.bytes().subspan(static_cast<size_t>(tensor.offset),
                               static_cast<size_t>(tensor.bytes));
}

bool is_gguf_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  if (path.extension() == ".gguf") return true;
  std::array<char, kMark.size()> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == kMark;
}

}  // namespace convoy::gguf
