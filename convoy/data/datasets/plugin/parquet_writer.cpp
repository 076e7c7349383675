// SPDX-License-Identifier: Apache-2.0
#include <arrow/api.h>
#include <arrow/io/interfaces.h>
#include <parquet/arrow/writer.h>

#include <exception>
#include <type_traits>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/json_members.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/plugin/arrow_status.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ColumnType::Kind;

// A row group ends at the first of these limits.
constexpr int64_t kGroupBytes = int64_t{16} << 20;
constexpr int64_t kGroupRows = 1 << 17;

std::shared_ptr<arrow::DataType> arrow_type(const ColumnType& type);

arrow::FieldVector arrow_fields(const ColumnType& type) {
  arrow::FieldVector fields;
  for (const auto& [name, field] : type.fields)
    fields.push_back(arrow::field(name, arrow_type(field)));
  return fields;
}

std::shared_ptr<arrow::DataType> arrow_type(const ColumnType& type) {
  switch (type.kind) {
    case Kind::Bool:
      return arrow::boolean();
    case Kind::Int:
      return arrow::int64();
    case Kind::Double:
      return arrow::float64();
    case Kind::List:
      return arrow::list(arrow::field("element", arrow_type(type.items.at(0))));
    case Kind::Struct:
      return arrow::struct_(arrow_fields(type));
    case Kind::Null:
    case Kind::String:
    case Kind::Text:
      break;
  }
  return arrow::utf8();
}

template <class Builder>
Builder& as(arrow::ArrayBuilder& builder) {
  return static_cast<Builder&>(builder);
}

// Appends the value to `builder`. Returns the approximate size of the value in bytes.
int64_t append(arrow::ArrayBuilder& builder, const ColumnType& type, const Json& value);

int64_t append_text(arrow::ArrayBuilder& builder, const std::string& text) {
  check(as<arrow::StringBuilder>(builder).Append(text));
  return static_cast<int64_t>(text.size());
}

int64_t append_list(arrow::ListBuilder& builder, const ColumnType& type, const Json& value) {
  int64_t bytes = 0;
  check(builder.Append());
  for (const Json& item : value) bytes += append(*builder.value_builder(), type.items.at(0), item);
  return bytes;
}

int64_t append_struct(arrow::StructBuilder& builder, const ColumnType& type, const Json& value) {
  int64_t bytes = 0;
  check(builder.Append());
  MemberCursor members(value);
  for (size_t field = 0; field < type.fields.size(); ++field) {
    const Json* const found = members.find(type.fields[field].first);
    bytes += append(*builder.child(static_cast<int>(field)), type.fields[field].second,
                    found == nullptr ? Json() : *found);
  }
  return bytes;
}

int64_t append(arrow::ArrayBuilder& builder, const ColumnType& type, const Json& value) {
  constexpr int64_t kNumberBytes = 8;
  if (value.is_null()) {
    check(builder.AppendNull());
    return 1;
  }
  switch (type.kind) {
    case Kind::Bool:
      check(as<arrow::BooleanBuilder>(builder).Append(value.get<bool>()));
      return kNumberBytes;
    case Kind::Int:
      check(as<arrow::Int64Builder>(builder).Append(value.get<int64_t>()));
      return kNumberBytes;
    case Kind::Double:
      check(as<arrow::DoubleBuilder>(builder).Append(value.get<double>()));
      return kNumberBytes;
    case Kind::String:
      return append_text(builder, value.get_ref<const std::string&>());
    case Kind::List:
      return append_list(as<arrow::ListBuilder>(builder), type, value);
    case Kind::Struct:
      return append_struct(as<arrow::StructBuilder>(builder), type, value);
    case Kind::Null:
    case Kind::Text:
      break;
  }
  return append_text(builder, cell_text(value));
}

// Passes the bytes of Arrow to a ByteSink. The sink's exceptions must not pass through Arrow, so
// they are stored and rethrown behind it.
class SinkStream : public arrow::io::OutputStream {
 public:
  explicit SinkStream(ByteSink& sink) : sink_(sink) {}

  arrow::Status Write(const void* bytes, int64_t count) override {
    try {
      sink_.write({static_cast<const char*>(bytes), static_cast<size_t>(count)});
    } catch (...) {
      error_ = std::current_exception();
      return arrow::Status::IOError("writing failed");
    }
    position_ += count;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  ByteSink& sink_;
  std::exception_ptr error_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class ArrowParquetWriter : public ParquetWriter {
 public:
  ArrowParquetWriter(const ColumnType& columns, ByteSink& sink)
      : columns_(columns), stream_(std::make_shared<SinkStream>(sink)) {
    guarded([&] {
      schema_ = arrow::schema(arrow_fields(columns_));
      std::unique_ptr<arrow::ArrayBuilder> builder;
      check(arrow::MakeBuilder(arrow::default_memory_pool(), arrow::struct_(schema_->fields()),
                               &builder));
      rows_.reset(static_cast<arrow::StructBuilder*>(builder.release()));
      auto writer = parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(),
                                                     stream_, parquet_properties());
      check(writer.status());
      writer_ = std::move(*writer);
    });
  }

  void write(const Json& row) override {
    guarded([&] {
      group_bytes_ += append_struct(*rows_, columns_, row);
      if (group_bytes_ >= kGroupBytes || rows_->length() >= kGroupRows) write_group();
    });
  }

  void finish() override {
    guarded([&] {
      if (rows_->length() > 0) write_group();
      check(writer_->Close());
    });
  }

 private:
  template <class Action>
  void guarded(Action&& action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
      throw IoError("the rows need more memory than there is",
                    {.hint = "write JSON lines instead: name an output that ends in .jsonl"});
    } catch (const std::exception& error) {
      stream_->rethrow();
      throw IoError(fmt::format("the rows cannot be written as Parquet: {}", error.what()),
                    {.hint = "write JSON lines instead: name an output that ends in .jsonl"});
    }
  }

  void write_group() {
    std::shared_ptr<arrow::StructArray> rows;
    check(rows_->Finish(&rows));
    group_bytes_ = 0;
    const auto table = arrow::Table::Make(schema_, rows->fields(), rows->length());
    check(writer_->WriteTable(*table, table->num_rows()));
  }

  ColumnType columns_;
  std::shared_ptr<SinkStream> stream_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<arrow::StructBuilder> rows_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  int64_t group_bytes_ = 0;
};

}  // namespace
}  // namespace convoy::data

extern "C" __attribute__((visibility("default"))) convoy::data::ParquetWriter*
convoy_create_parquet(const convoy::data::ColumnType& columns, convoy::data::ByteSink& sink) {
  return new convoy::data::ArrowParquetWriter(columns, sink);
}

static_assert(std::is_same_v<decltype(convoy_create_parquet), convoy::data::CreateParquetFunction>);
