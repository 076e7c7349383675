// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/safetensors.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::io {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxDims = 8;
constexpr size_t kLengthBytes = 8;

struct DtypeInfo {
  std::string_view name;
  int64_t bytes;
};
// Indexed by Dtype.
constexpr std::array<DtypeInfo, 17> kDtypes = {{{"BOOL", 1},
                                                {"U8", 1},
                                                {"I8", 1},
                                                {"F8_E5M2", 1},
                                                {"F8_E4M3", 1},
                                                {"F8_E8M0", 1},
                                                {"I16", 2},
                                                {"U16", 2},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I32", 4},
                                                {"U32", 4},
                                                {"F32", 4},
                                                {"C64", 8},
                                                {"F64", 8},
                                                {"I64", 8},
                                                {"U64", 8}}};

std::optional<Dtype> dtype_by_name(std::string_view name) {
  for (size_t index = 0; index < kDtypes.size(); ++index)
    if (kDtypes[index].name == name) return static_cast<Dtype>(index);
  return std::nullopt;
}

// Returns shape x dtype in bytes. Empty on a negative dimension or when the product overflows
// int64.
std::optional<int64_t> checked_bytes(Dtype dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = dtype_bytes(dtype);
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  return bytes;
}

struct HeaderEntry {
  std::string name;
  std::optional<Dtype> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
  int64_t begin = 0;  // set once both `offsets` were read
  int64_t end = 0;
};

// Reads the header from parser events, without a document: a header of 1M tensors costs only its
// entries. The format has four levels; deeper nesting or values elsewhere are refused at once.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& file) : file_(file) {}

  std::vector<HeaderEntry> entries;
  Metadata metadata;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("true or false"); }
  bool number_integer(int64_t value) { return unexpected(fmt::format("{}", value)); }
  bool number_float(double, const std::string& text) { return unexpected(text); }
  bool binary(nlohmann::json::binary_t&) { return unexpected("binary"); }

  bool number_unsigned(uint64_t value) {
    if (numbers_ == nullptr) return unexpected(fmt::format("{}", value));
    if (value > uint64_t{INT64_MAX}) fail(fmt::format("`{}`: {} is out of range", field_, value));
    if (numbers_->size() == kMaxDims)
      fail(fmt::format("`{}` has more than {} dims", field_, kMaxDims));
    numbers_->push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    if (numbers_ != nullptr || level_ != Level::Entry) return unexpected("a string");
    if (in_metadata_) {
      if (!metadata.emplace(field_, std::move(value)).second)
        fail(fmt::format("`__metadata__` holds `{:.100}` twice", field_));
      return true;
    }
    if (field_ != "dtype") return unexpected("a string");
    if (current().dtype) fail("`dtype` stands twice");
    current().dtype = dtype_by_name(value);
    if (!current().dtype) fail(fmt::format("unknown dtype `{:.40}`", value));
    return true;
  }

  bool start_object(size_t) {
    if (numbers_ != nullptr) return unexpected("an object");
    if (level_ == Level::Outside) {
      level_ = Level::Names;
      return true;
    }
    if (level_ != Level::Names) return unexpected("an object");
    level_ = Level::Entry;
    in_metadata_ = field_ == "__metadata__";
    if (in_metadata_ && std::exchange(seen_metadata_, true)) fail("`__metadata__` stands twice");
    if (!in_metadata_) {
      if (entries.size() == kMaxTensors) fail(fmt::format("more than {} tensors", kMaxTensors));
      entries.push_back(
          {.name = field_, .dtype = {}, .shape = {}, .offsets = {}, .begin = 0, .end = 0});
    }
    return true;
  }

  bool end_object() {
    if (level_ == Level::Names) {
      level_ = Level::Outside;
      return true;
    }
    level_ = Level::Names;
    if (in_metadata_) return true;
    if (!current().dtype) fail("`dtype` is missing");
    if (!current().shape) fail("`shape` is missing");
    if (!current().offsets || current().offsets->size() != 2) fail("wanted two `data_offsets`");
    current().begin = current().offsets->front();
    current().end = current().offsets->back();
    return true;
  }

  bool start_array(size_t) {
    if (level_ != Level::Entry || in_metadata_ || numbers_ != nullptr) return unexpected("a list");
    std::optional<std::vector<int64_t>>& target =
        field_ == "shape" ? current().shape : current().offsets;
    if (field_ != "shape" && field_ != "data_offsets") return unexpected("a list");
    if (target) fail(fmt::format("`{}` stands twice", field_));
    numbers_ = &target.emplace();
    return true;
  }

  bool end_array() {
    numbers_ = nullptr;
    return true;
  }

  bool key(std::string& name) {
    field_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    throw DataError(fmt::format("the header is not valid JSON at byte {}: {:.200}", position,
                                std::string(error.what())),
                    {.file = file_, .hint = "the file is damaged or cut: get it again"});
  }

 private:
  enum class Level { Outside, Names, Entry };

  HeaderEntry& current() { return entries.back(); }

  bool unexpected(const std::string& what) {
    fail(fmt::format("found {:.60} at `{:.100}`, where the format has none", what, field_));
  }

  [[noreturn]] void fail(const std::string& message) const {
    const bool in_tensor = level_ == Level::Entry && !in_metadata_ && !entries.empty();
    const std::string name = in_tensor ? entries.back().name : "";
    throw DataError(
        in_tensor ? fmt::format("header, tensor `{:.200}`: {}", name, message)
                  : fmt::format("header: {}", message),
        {.file = file_, .key = name, .hint = "the file is damaged or cut: get it again"});
  }

  const std::string& file_;
  Level level_ = Level::Outside;
  bool in_metadata_ = false;
  bool seen_metadata_ = false;
  std::string field_;
  std::vector<int64_t>* numbers_ = nullptr;
};

// The header's JSON text, without the length before it and the padding after it.
std::string_view header_text(std::span<const std::byte> bytes, const std::string& file,
                             size_t& data_begin) {
  const auto fail = [&](const std::string& message) {
    const bool zip = bytes.size() >= 2 && std::memcmp(bytes.data(), "PK", 2) == 0;
    const bool pickle =
        bytes.size() >= 2 && bytes[0] == std::byte{0x80} && bytes[1] <= std::byte{5};
    constexpr std::string_view kPointer = "version https://git-lfs";
    const bool pointer = bytes.size() >= kPointer.size() &&
                         std::memcmp(bytes.data(), kPointer.data(), kPointer.size()) == 0;
    const std::string hint =
        pointer         ? "git left a pointer here; `git lfs pull` in this folder fetches the file"
        : zip || pickle ? "this is a pickle or zip file of PyTorch under another name; convert it "
                          "with safetensors.torch.save_file"
                        : "the file is damaged or no safetensors file; fetch it again";
    throw DataError("not a safetensors file: " + message, {.file = file, .hint = hint});
  };
  if (bytes.size() < kLengthBytes) fail(fmt::format("{} bytes are too few", bytes.size()));
  uint64_t length = 0;
  for (size_t index = 0; index < kLengthBytes; ++index)
    length |= std::to_integer<uint64_t>(bytes[index]) << (8 * index);
  if (length > kMaxHeaderBytes) fail(fmt::format("a header of {} bytes, more than 100 MB", length));
  if (length > bytes.size() - kLengthBytes)
    fail(fmt::format("a header of {} bytes in a file of {}", length, bytes.size()));
  data_begin = kLengthBytes + length;
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!text.starts_with('{')) fail("the header does not begin with '{'");
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  if (!text.ends_with('}')) fail("the header ends in something else than '}' and spaces");
  // The parser treats a NUL byte as the end of the text.
  if (text.find('\0') != std::string_view::npos) fail("the header holds a NUL byte");
  return text;
}

void check_entry(const HeaderEntry& entry, const std::string& file) {
  const auto [begin, end] = std::pair(entry.begin, entry.end);
  const std::optional<int64_t> bytes = checked_bytes(*entry.dtype, *entry.shape);
  if (!bytes || end < begin || end - begin != *bytes)
    throw DataError(
        fmt::format("tensor `{:.200}`: data_offsets {} to {} do not fit {} of shape [{}]",
                    entry.name, begin, end, dtype_name(*entry.dtype),
                    fmt::join(*entry.shape, ", ")),
        {.file = file, .key = entry.name, .hint = "the file is damaged or cut: get it again"});
}

}  // namespace

int64_t dtype_bytes(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].bytes; }

std::string_view dtype_name(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)].name; }

int64_t TensorView::num_elements() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

TensorView TensorView::elements(int64_t begin, int64_t count) const {
  const int64_t element_bytes = dtype_bytes(dtype);
  TensorView part = *this;
  part.shape = {count};
  if (stored != nullptr) {
    part.first_element += begin;
    return part;
  }
  part.bytes = bytes.subspan(static_cast<size_t>(begin * element_bytes),
                             static_cast<size_t>(count * element_bytes));
  part.file_offset += begin * element_bytes;
  return part;
}

void copy_bytes(const TensorView& view, std::span<std::byte> destination) {
  if (view.stored != nullptr) {
    const int64_t bytes = view.num_elements() * dtype_bytes(view.dtype);
    CONVOY_INVARIANT(std::ssize(destination) == bytes, "tensor {}: {} bytes into {}", view.name,
                     bytes, destination.size());
    view.stored->read(view.first_element, destination);
    return;
  }
  CONVOY_INVARIANT(destination.size() == view.bytes.size(), "tensor {}: {} bytes into {}",
                   view.name, view.bytes.size(), destination.size());
  if (view.descriptor < 0) {
    std::copy(view.bytes.begin(), view.bytes.end(), destination.begin());
    return;
  }
  size_t done = 0;
  while (done < destination.size()) {
    const ssize_t count =
        ::pread(view.descriptor, destination.data() + done, destination.size() - done,
                view.file_offset + static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw DataError(
          fmt::format("tensor `{:.200}`: read {} of {} bytes; the file was cut while in use",
                      view.name, done, destination.size()),
          {.key = view.name, .hint = "run this again when nothing writes to the file"});
    done += static_cast<size_t>(count);
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string place = path.string();
  size_t data_begin = 0;
  const std::string_view text = header_text(file_.bytes(), place, data_begin);
  HeaderReader header(place);
  nlohmann::json::sax_parse(text.begin(), text.end(), &header);
  metadata_ = std::move(header.metadata);

  std::vector<HeaderEntry>& entries = header.entries;
  for (const HeaderEntry& entry : entries) check_entry(entry, place);
  std::stable_sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const std::span<const std::byte> data = file_.bytes().subspan(data_begin);
  int64_t expected_begin = 0;
  tensors_.reserve(entries.size());
  by_name_.reserve(entries.size());
  for (HeaderEntry& entry : entries) {
    const auto [begin, end] = std::pair(entry.begin, entry.end);
    if (begin != expected_begin)
      throw DataError(
          fmt::format("tensor `{:.200}` begins at byte {} of the data, wanted {}: a {}", entry.name,
                      begin, expected_begin, begin > expected_begin ? "hole" : "overlap"),
          {.file = place, .key = entry.name, .hint = "the file is damaged or cut: get it again"});
    if (end > std::ssize(data))
      throw DataError(
          fmt::format("tensor `{:.200}` ends at byte {} of the data, but there are only {}",
                      entry.name, end, data.size()),
          {.file = place, .key = entry.name, .hint = "the file was cut; fetch it again"});
    if (!by_name_.emplace(entry.name, tensors_.size()).second)
      throw DataError(
          fmt::format("two tensors are called `{:.200}`", entry.name),
          {.file = place, .key = entry.name, .hint = "the file is damaged or cut: get it again"});
    expected_begin = end;
    tensors_.push_back({std::move(entry.name), *entry.dtype, std::move(*entry.shape),
                        data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                        file_.descriptor(), static_cast<int64_t>(data_begin) + begin, nullptr, 0});
  }
  if (expected_begin != std::ssize(data))
    throw DataError(fmt::format("the tensors end at byte {} of the data, but there are {}",
                                expected_begin, data.size()),
                    {.file = place, .hint = "the file is damaged or cut: get it again"});
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const TensorView& SafetensorsFile::require(const std::string& name) const {
  const TensorView* view = find(name);
  if (view == nullptr)
    throw DataError(
        fmt::format("the tensor `{}` is missing", name),
        {.file = path().string(), .key = name, .hint = "fetch the model or adapter again"});
  return *view;
}

int64_t TensorSource::num_bytes() const {
  const std::optional<int64_t> bytes = checked_bytes(dtype, shape);
  CONVOY_INVARIANT(bytes.has_value(), "tensor {} of shape [{}]", name, fmt::join(shape, ", "));
  return *bytes;
}

TensorSource tensor_source(std::string name, Dtype dtype, std::vector<int64_t> shape,
                           std::span<const std::byte> bytes) {
  return {std::move(name), dtype, std::move(shape), [bytes](const ByteSink& sink) { sink(bytes); }};
}

void stream_safetensors(std::vector<TensorSource> tensors, const ByteSink& sink,
                        const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSource& a, const TensorSource& b) {
    return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
  });
  // The header is written by hand, because nlohmann's ordered document searches linearly for every
  // key.
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\":" + nlohmann::json(metadata).dump();
  int64_t begin = 0;
  std::unordered_map<std::string_view, bool> names;
  for (const TensorSource& tensor : tensors) {
    CONVOY_INVARIANT(names.emplace(tensor.name, true).second, "two tensors called {}", tensor.name);
    const int64_t end = begin + tensor.num_bytes();
    if (header.size() > 1) header += ',';
    header += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          quoted(tensor.name), dtype_name(tensor.dtype),
                          fmt::join(tensor.shape, ","), begin, end);
    begin = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');  // aligns the data

  std::array<char, kLengthBytes> length;
  for (size_t index = 0; index < kLengthBytes; ++index)
    length[index] = static_cast<char>(header.size() >> (8 * index));
  sink(std::as_bytes(std::span(length)));
  sink(std::as_bytes(std::span(header)));
  for (const TensorSource& tensor : tensors) {
    int64_t written_bytes = 0;
    tensor.produce([&](std::span<const std::byte> bytes) {
      written_bytes += std::ssize(bytes);
      sink(bytes);
    });
    CONVOY_INVARIANT(written_bytes == tensor.num_bytes(), "tensor {}: {} bytes produced, {} wanted",
                     tensor.name, written_bytes, tensor.num_bytes());
  }
}

void write_safetensors(const std::filesystem::path& path, std::vector<TensorSource> tensors,
                       const Metadata& metadata) {
  AtomicFile file(path);
  stream_safetensors(
      std::move(tensors), [&file](std::span<const std::byte> bytes) { file.write(bytes); },
      metadata);
  file.commit();
}

}  // namespace convoy::io
