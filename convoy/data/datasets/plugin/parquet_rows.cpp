// SPDX-License-Identifier: Apache-2.0
//
// Parquet through Arrow C++. Batches are checked in full before a value is read, and the library's
// exceptions leave this file only as DataError.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/formats/row_formats.h"
#include "convoy/data/datasets/plugin/arrow_status.h"

namespace convoy::data {
namespace {

// Limits for the number of rows that are decoded at once; the bytes are computed from the average
// row.
constexpr int64_t kMostBatchRows = 1024;
constexpr int64_t kBatchBytes = int64_t{16} << 20;

nlohmann::ordered_json to_json(const arrow::Array& array, int64_t at, int depth);

template <class ArrayType>
nlohmann::ordered_json value_of(const arrow::Array& array, int64_t at) {
  return static_cast<const ArrayType&>(array).Value(at);
}

template <class ArrayType>
nlohmann::ordered_json text_of(const arrow::Array& array, int64_t at) {
  const auto text = static_cast<const ArrayType&>(array).GetView(at);
  if (text.size() > kMaxRowBytes)
    throw DataError(fmt::format("a value is longer than {} MiB", kMaxRowBytes >> 20),
                    {.hint = "write the value into rows of its own"});
  if (const auto bad = find_invalid_utf8(text))
    throw DataError(fmt::format("a value is not valid UTF-8 at byte {}", *bad + 1),
                    {.hint = "store binary values as a list of numbers, or leave the column out"});
  return std::string(text);
}

template <class ArrayType>
nlohmann::ordered_json list_of(const arrow::Array& array, int64_t at, int depth) {
  const auto& list = static_cast<const ArrayType&>(array);
  auto value = nlohmann::ordered_json::array();
  const auto begin = static_cast<int64_t>(list.value_offset(at));
  const auto count = static_cast<int64_t>(list.value_length(at));
  for (int64_t item = begin; item < begin + count; ++item)
    value.push_back(to_json(*list.values(), item, depth + 1));
  return value;
}

nlohmann::ordered_json struct_of(const arrow::Array& array, int64_t at, int depth) {
  const auto& record = static_cast<const arrow::StructArray&>(array);
  auto value = nlohmann::ordered_json::object();
  for (int field = 0; field < record.num_fields(); ++field)
    value[record.type()->field(field)->name()] = to_json(*record.field(field), at, depth + 1);
  return value;
}

nlohmann::ordered_json map_of(const arrow::Array& array, int64_t at, int depth) {
  const auto& map = static_cast<const arrow::MapArray&>(array);
  auto value = nlohmann::ordered_json::object();
  const int64_t end = map.value_offset(at) + map.value_length(at);
  for (int64_t item = map.value_offset(at); item < end; ++item) {
    const nlohmann::ordered_json key = to_json(*map.keys(), item, depth + 1);
    if (!key.is_string())
      throw DataError(fmt::format("a map with keys of type {} cannot be read; wanted texts",
                                  map.keys()->type()->ToString()),
                      {.hint = "write the map with text keys, or as a list of pairs"});
    value[key.get<std::string>()] = to_json(*map.items(), item, depth + 1);
  }
  return value;
}

nlohmann::ordered_json to_json(const arrow::Array& array, int64_t at, int depth) {
  if (depth > kMaxJsonDepth)
    throw DataError(fmt::format("columns nested deeper than {} levels", kMaxJsonDepth),
                    {.hint = "write it with fewer levels"});
  if (array.IsNull(at)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return value_of<arrow::BooleanArray>(array, at);
    case arrow::Type::INT8:
      return value_of<arrow::Int8Array>(array, at);
    case arrow::Type::INT16:
      return value_of<arrow::Int16Array>(array, at);
    case arrow::Type::INT32:
      return value_of<arrow::Int32Array>(array, at);
    case arrow::Type::INT64:
      return value_of<arrow::Int64Array>(array, at);
    case arrow::Type::UINT8:
      return value_of<arrow::UInt8Array>(array, at);
    case arrow::Type::UINT16:
      return value_of<arrow::UInt16Array>(array, at);
    case arrow::Type::UINT32:
      return value_of<arrow::UInt32Array>(array, at);
    case arrow::Type::UINT64:
      return value_of<arrow::UInt64Array>(array, at);
    case arrow::Type::FLOAT:
      return value_of<arrow::FloatArray>(array, at);
    case arrow::Type::DOUBLE:
      return value_of<arrow::DoubleArray>(array, at);
    case arrow::Type::STRING:
      return text_of<arrow::StringArray>(array, at);
    case arrow::Type::LARGE_STRING:
      return text_of<arrow::LargeStringArray>(array, at);
    case arrow::Type::STRING_VIEW:
      return text_of<arrow::StringViewArray>(array, at);
    case arrow::Type::BINARY_VIEW:
      return text_of<arrow::BinaryViewArray>(array, at);
    case arrow::Type::BINARY:
      return text_of<arrow::BinaryArray>(array, at);
    case arrow::Type::LARGE_BINARY:
      return text_of<arrow::LargeBinaryArray>(array, at);
    case arrow::Type::LIST:
      return list_of<arrow::ListArray>(array, at, depth);
    case arrow::Type::LARGE_LIST:
      return list_of<arrow::LargeListArray>(array, at, depth);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_of<arrow::FixedSizeListArray>(array, at, depth);
    case arrow::Type::LIST_VIEW:
      return list_of<arrow::ListViewArray>(array, at, depth);
    case arrow::Type::LARGE_LIST_VIEW:
      return list_of<arrow::LargeListViewArray>(array, at, depth);
    case arrow::Type::MAP:
      return map_of(array, at, depth);
    case arrow::Type::STRUCT:
      return struct_of(array, at, depth);
    case arrow::Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return to_json(*dictionary.dictionary(), dictionary.GetValueIndex(at), depth + 1);
    }
    case arrow::Type::EXTENSION:
      return to_json(*static_cast<const arrow::ExtensionArray&>(array).storage(), at, depth + 1);
    default: {  // times, decimals and similar types become text
      const auto scalar = array.GetScalar(at);
      if (!scalar.ok() || arrow::is_nested(array.type_id()))
        throw DataError(fmt::format("a value of type {} cannot be read", array.type()->ToString()),
                        {.hint = "cast the column to text, a number or a list in the file"});
      return (*scalar)->ToString();
    }
  }
}

class ParquetRows : public RowSource {
 public:
  explicit ParquetRows(std::filesystem::path path) : path_(std::move(path)) {
    guarded([&] { open(); });
  }

  std::optional<Row> next() override {
    std::optional<Row> row;
    row_is_lost_ = false;
    guarded([&] {
      if (!batch_ || at_ == batch_->num_rows()) load_batch();
      if (!batch_) return;
      row_is_lost_ = true;
      const int64_t at = at_++;
      row = Row{nlohmann::ordered_json::object(), path_.string(), 0, index_++};
      for (int column = 0; column < batch_->num_columns(); ++column)
        row->value[batch_->column_name(column)] = to_json(*batch_->column(column), at, 0);
    });
    return row;
  }

  int64_t skip(int64_t count) override {
    int64_t skipped = 0;
    guarded([&] {
      if (!batches_) skipped = skip_groups(count);
      while (skipped < count) {
        if (!batch_ || at_ == batch_->num_rows()) load_batch();
        if (!batch_) break;
        const int64_t step = std::min(count - skipped, batch_->num_rows() - at_);
        at_ += step;
        skipped += step;
      }
      index_ += skipped;
    });
    return skipped;
  }

  bool row_is_lost() const override { return row_is_lost_; }

 private:
  template <class Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const DataError& error) {
      throw DataError(fmt::format("row {}: {}", index_, error.what()),
                      {.file = path_.string(), .hint = error.location().hint});
    } catch (const std::bad_alloc&) {
      throw DataError("the Parquet file asks for more memory than there is",
                      {.file = path_.string(), .hint = "write the file with smaller row groups"});
    } catch (const std::exception& error) {  // exceptions of parquet and its decoders
      // The text of such an exception may quote bytes of the file.
      const std::string_view reason = find_invalid_utf8(error.what()) ? "unreadable" : error.what();
      throw DataError(fmt::format("not a valid Parquet file: {}{}", reason,
                                  index_ > 0 ? fmt::format(" (behind row {})", index_) : ""),
                      {.file = path_.string(), .hint = "write the file again, or get it again"});
    }
  }
  void open() {
    auto file = arrow::io::ReadableFile::Open(path_.string());
    check(file.status());
    parquet::ReaderProperties properties = parquet::default_reader_properties();
    properties.set_page_checksum_verification(true);
    properties.enable_buffered_stream();  // a group may be larger than the memory
    properties.set_buffer_size(int64_t{1} << 20);
    parquet::ArrowReaderProperties arrow_properties(false);
    arrow_properties.set_batch_size(kMostBatchRows);
    arrow_properties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(*file, properties));
    builder.properties(arrow_properties);
    check(builder.Build(&reader_));
    reader_->set_batch_size(batch_rows(*reader_->parquet_reader()->metadata()));
  }

  static int64_t batch_rows(const parquet::FileMetaData& metadata) {
    int64_t most_row_bytes = 1;
    for (int group = 0; group < metadata.num_row_groups(); ++group) {
      const auto rows = std::max<int64_t>(metadata.RowGroup(group)->num_rows(), 1);
      most_row_bytes = std::max(most_row_bytes, metadata.RowGroup(group)->total_byte_size() / rows);
    }
    return std::clamp<int64_t>(kBatchBytes / most_row_bytes, 1, kMostBatchRows);
  }

  // Skips whole row groups without reading their pages.
  int64_t skip_groups(int64_t count) {
    const auto metadata = reader_->parquet_reader()->metadata();
    int64_t skipped = 0;
    while (first_group_ < metadata->num_row_groups()) {
      const int64_t rows = metadata->RowGroup(first_group_)->num_rows();
      if (skipped + rows > count) break;
      skipped += rows;
      ++first_group_;
    }
    return skipped;
  }

  void load_batch() {
    batch_.reset();
    if (!batches_) open_batches();
    do {
      check(batches_->ReadNext(&batch_));
    } while (batch_ && batch_->num_rows() == 0);
    at_ = 0;
    if (batch_) check(batch_->ValidateFull());
  }

  void open_batches() {
    std::vector<int> groups;
    for (int group = first_group_; group < reader_->num_row_groups(); ++group)
      groups.push_back(group);
    auto batches = reader_->GetRecordBatchReader(groups);
    check(batches.status());
    batches_ = std::move(*batches);
  }

  std::filesystem::path path_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::RecordBatch> batch_;
  int64_t at_ = 0;
  int64_t index_ = 0;
  int first_group_ = 0;
  bool row_is_lost_ = false;
};

}  // namespace
}  // namespace convoy::data

extern "C" __attribute__((visibility("default"))) convoy::data::RowSource* convoy_open_parquet(
    const std::filesystem::path& path) {
  return new convoy::data::ParquetRows(path);
}

static_assert(std::is_same_v<decltype(convoy_open_parquet), convoy::data::OpenParquetFunction>);
