// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/rope_divisors.h"
#include "convoy/core/io/gguf/tokenizer_text.h"

namespace convoy::gguf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPartKey = "split.no";
constexpr const char* kPartsKey = "split.count";
constexpr int64_t kMostParts = 10'000;
constexpr int64_t kPieceBytes = int64_t{1} << 20;

// The name of a part: "x-00002-of-00003.gguf" for the second part. Empty when `first` is not named
// like a first part.
std::string name_of_part(const std::string& first, int64_t part, int64_t parts) {
  const std::string end = fmt::format("-00001-of-{:05}.gguf", parts);
  if (!first.ends_with(end)) return "";
  return fmt::format("{}-{:05}-of-{:05}.gguf", first.substr(0, first.size() - end.size()), part,
                     parts);
}

std::optional<io::Dtype> plain_dtype(TensorType type) {
  if (type == TensorType::F32) return io::Dtype::F32;
  if (type == TensorType::F16) return io::Dtype::F16;
  if (type == TensorType::BF16) return io::Dtype::BF16;
  return std::nullopt;
}

// True for tensors of rotary divisors and of the scale of scores: config.json holds them.
bool is_part_of_config(const Family& family, std::string_view name) {
  if (name == kLlama3Divisors) return true;
  if (family.gate_map &&
      (name.ends_with(".attn_q_norm.weight") || name.ends_with(".attn_k_norm.weight")))
    return true;
  return family.architecture == "phi3" && (name == kShortDivisors || name == kLongDivisors);
}

}  // namespace

// A tensor whose values are not stored as they are used: codes become fp32; floats whose rows are
// in another order keep their type.
struct Model::Values : io::StoredElements {
  const File* file = nullptr;
  TensorPlace place;
  // The functions return the row, or the column, of the file that holds transformers' row or column
  // `own`. Empty: the same number.
  std::function<int64_t(int64_t own)> file_row = {};
  std::function<int64_t(int64_t own)> file_column = {};
  Stored stored_as = Stored::AsTheyAre;
  bool decodes = true;

  void read(int64_t begin, std::span<std::byte> out) const override {
    const int64_t row_values = place.row_values();
    const int64_t value_bytes =
        decodes ? static_cast<int64_t>(sizeof(float)) : info_of(place.type).block_bytes;
    const auto count = static_cast<int64_t>(out.size()) / value_bytes;
    std::vector<std::byte> stored;
    std::vector<float> values;
    for (int64_t done = 0; done < count;) {
      const int64_t row = (begin + done) / row_values, in_row = (begin + done) % row_values;
      const int64_t rows = rows_at_once(in_row, count - done);
      stored.resize(static_cast<size_t>(rows * place.row_bytes()));
      const int64_t from = file_row ? file_row(row) : row;
      file->read(place.offset + from * place.row_bytes(), stored);
      std::span<const std::byte> bytes = stored;
      if (decodes) {
        values.resize(static_cast<size_t>(rows * row_values));
        decode(place.type, stored, values);
        make_own(values);
        bytes = std::as_bytes(std::span<const float>(values));
      }
      const int64_t taken = std::min(count - done, rows * row_values - in_row);
      std::memcpy(out.data() + done * value_bytes, bytes.data() + in_row * value_bytes,
                  static_cast<size_t>(taken * value_bytes));
      done += taken;
    }
  }

 private:
  // Converts whole rows of the file to transformers' values.
  void make_own(std::vector<float>& values) const {
    for (float& value : values) {
      if (stored_as == Stored::PlusOne) value -= 1.0f;
      if (stored_as == Stored::MinusExp) value = std::log(-value);
    }
    if (!file_column) return;
    const auto columns = static_cast<size_t>(place.row_values());
    const std::vector<float> in_file = values;
    for (size_t row = 0; row < values.size(); row += columns)
      for (size_t column = 0; column < columns; ++column)
        values[row + column] =
            in_file[row + static_cast<size_t>(file_column(static_cast<int64_t>(column)))];
  }

  // Number of rows that can be read at once, because they follow each other in the file.
  int64_t rows_at_once(int64_t in_row, int64_t left) const {
    if (file_row || in_row > 0) return 1;
    return std::clamp<int64_t>(left / place.row_values(), 1,
                               std::max<int64_t>(1, kPieceBytes / place.row_bytes()));
  }
};

Model::Model(const fs::path& path) {
  files_.push_back(std::make_unique<File>(path));
  family_ = &require_family(first());
  open_others();
  list_tensors();
}

Model::~Model() = default;

void Model::open_others() {
  const int64_t parts = first().integer(kPartsKey, 0, kMostParts).value_or(1);
  if (parts <= 1) return;
  const fs::path path = first().path();
  const int64_t own = first().integer(kPartKey, 0, kMostParts).value_or(0);
  if (own != 0 || name_of_part(path.filename(), 1, parts).empty())
    throw DataError(fmt::format("the model is in {} files, and this is number {}", parts, own + 1),
                    {.file = path.string(),
                     .key = kPartsKey,
                     .hint = fmt::format(
                         "name the first, NAME-00001-of-{:05}.gguf, beside the others", parts)});
  for (int64_t part = 2; part <= parts; ++part) {
    const fs::path other = path.parent_path() / name_of_part(path.filename(), part, parts);
    auto file = std::make_unique<File>(other);
    if (file->integer(kPartKey, 0, kMostParts).value_or(-1) != part - 1 ||
        file->integer(kPartsKey, 0, kMostParts).value_or(-1) != parts)
      file->fail(kPartKey, fmt::format("wanted part {} of {}", part, parts));
    files_.push_back(std::move(file));
  }
}

namespace {

// The layer of "blk.3.attn_q.weight"; -1 outside of layers.
int64_t block_of(std::string_view name) {
  constexpr std::string_view kStart = "blk.";
  if (!name.starts_with(kStart)) return -1;
  return text_as<int64_t>(name.substr(kStart.size(), name.find('.', kStart.size()) - kStart.size()))
      .value_or(-1);
}

[[noreturn]] void refuse_shape(const File& file, const TensorPlace& place, std::string message) {
  throw DataError(fmt::format("tensor `{}`: {}", place.name, message),
                  {.file = file.path().string(),
                   .key = place.name,
                   .hint = "the file does not fit its own metadata: get it again"});
}

}  // namespace

void Model::add_tensor(const File& file, const TensorPlace& place, const std::string& own,
                       const Sizes& sizes) {
  io::TensorView view{.name = own, .shape = place.shape, .bytes = file.stored(place)};
  auto values = std::make_unique<Values>();
  values->file = &file;
  values->place = place;
  values->stored_as = stored_as(*family_, own);
  const int64_t num_rows = place.shape.empty() ? 1 : place.shape[0];
  if (rows_of(*family_, own) != Rows::AsTheyAre) {
    if (num_rows % sizes.head_dim != 0)
      refuse_shape(file, place,
                   fmt::format("{} rows are no whole heads of {}", num_rows, sizes.head_dim));
    values->file_row = [head_dim = sizes.head_dim](int64_t row) {
      return permuted_row(row, head_dim);
    };
  }
  if (const auto part = family_->delta_net ? value_head_part(sizes.value_heads, own) : std::nullopt)
    order_value_heads(file, *part, sizes.value_heads, *values);
  // A bias is treated as rows of one value.
  if (values->file_row && place.shape.size() == 1) values->place.shape = {num_rows, 1};
  // transformers' weight has a dimension of size 1 for the one input of each channel.
  if (own.ends_with(".conv1d.weight") && place.shape.size() == 2)
    view.shape = {place.shape[0], 1, place.shape[1]};
  const auto dtype = plain_dtype(place.type);
  const bool changes = values->stored_as != Stored::AsTheyAre || values->file_column;
  if (dtype && !changes && !values->file_row) {
    view.dtype = *dtype;
    view.descriptor = file.descriptor();
    view.file_offset = place.offset;
  } else {
    values->decodes = !dtype || changes;
    view.dtype = values->decodes ? io::Dtype::F32 : *dtype;
    view.stored = values.get();
    values_.push_back(std::move(values));
  }
  tensors_.push_back(std::move(view));
}

void Model::order_value_heads(const File& file, const ValueHeadPart& part, const ValueHeads& heads,
                              Values& values) {
  const std::vector<int64_t>& shape = values.place.shape;
  const int64_t found = shape.empty() ? 1 : part.columns ? shape.back() : shape.front();
  const int64_t wanted = part.first + heads.num_value_heads * part.width;
  if (found != wanted)
    refuse_shape(file, values.place,
                 fmt::format("{} {} where the value heads need {}", found,
                             part.columns ? "columns" : "rows", wanted));
  if (heads.heads_of_a_key() == 1 || heads.num_key_heads == 1) return;  // the two orders are equal
  (part.columns ? values.file_column : values.file_row) = [part, heads](int64_t own) {
    return part.file_place(heads, own);
  };
}

void Model::list_tensors() {
  const Sizes sizes = read_sizes(first());
  std::vector<std::string> unknown;
  for (const auto& file : files_) {
    for (const TensorPlace& place : file->tensors()) {
      if (is_part_of_config(*family_, place.name)) continue;
      if (sizes.further_layers > 0 && block_of(place.name) >= sizes.num_layers) continue;
      if (const auto own = own_name_of(*family_, place.name))
        add_tensor(*file, place, *own, sizes);
      else
        unknown.push_back(place.name);
    }
  }
  if (unknown.empty()) return;
  throw DataError(
      fmt::format(
          "{} tensors that a model of this architecture has not: {}{}", unknown.size(),
          fmt::join(unknown.begin(),
                    unknown.begin() + static_cast<ptrdiff_t>(std::min<size_t>(5, unknown.size())),
                    ", "),
          unknown.size() > 5 ? ", ..." : ""),
      {.file = first().path().string(),
       .key = unknown.front(),
       .hint = "take the model in Hugging Face layout"});
}

const TensorPlace* Model::find(const std::string& name) const {
  for (const auto& file : files_)
    if (const TensorPlace* const place = file->find_tensor(name)) return place;
  return nullptr;
}

std::vector<float> Model::read(const std::string& name) const {
  for (const auto& file : files_) {
    const TensorPlace* const place = file->find_tensor(name);
    if (place == nullptr) continue;
    std::vector<std::byte> stored(static_cast<size_t>(place->bytes));
    file->read(place->offset, stored);
    std::vector<float> values(static_cast<size_t>(place->num_rows() * place->row_values()));
    decode(place->type, stored, values);
    return values;
  }
  throw StateError(fmt::format("no tensor {}", name));
}

std::vector<std::string> Model::text_names() {
  return {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"};
}

std::optional<std::string> Model::text(const std::string& name) const {
  if (name == "config.json")
    return config_text(
        first(), *family_, [this](const std::string& tensor) { return find(tensor); },
        [this](const std::string& tensor) { return read(tensor); });
  if (name == "generation_config.json") return generation_config_text(first());
  if (name == "tokenizer.json") return tokenizer_json_text(first());
  if (name == "tokenizer_config.json") return tokenizer_config_text(first());
  return std::nullopt;
}

std::optional<std::string> Model::text_in(const fs::path& path, const std::string& name) {
  if (name == "tokenizer.json") return tokenizer_json_text(File(path));
  if (name == "tokenizer_config.json") return tokenizer_config_text(File(path));
  return Model(path).text(name);
}

std::vector<fs::path> Model::files() const {
  std::vector<fs::path> paths;
  for (const auto& file : files_) paths.push_back(file->path());
  return paths;
}

std::vector<std::string> Model::notices() const {
  std::vector<std::string> notices = tokenizer_notices(first());
  if (const auto unread = unread_keys(first()); !unread.empty())
    notices.push_back(fmt::format("{}: not known, and not used: {}", first().path().string(),
                                  fmt::join(unread, ", ")));
  return notices;
}

}  // namespace convoy::gguf
