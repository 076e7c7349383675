// SPDX-License-Identifier: Apache-2.0
#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>

#include <memory>
#include <type_traits>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/formats/parquet_plugin.h"
#include "convoy/data/datasets/plugin/arrow_status.h"

namespace convoy::data {
namespace {

template <class Builder, class T>
std::shared_ptr<arrow::Array> array_of(const Cells<T>& cells) {
  Builder builder;
  for (const std::optional<T>& cell : cells)
    check(cell ? builder.Append(*cell) : builder.AppendNull());
  std::shared_ptr<arrow::Array> array;
  check(builder.Finish(&array));
  return array;
}

struct ToArray {
  std::shared_ptr<arrow::Array> operator()(const Cells<int64_t>& cells) const {
    return array_of<arrow::Int64Builder>(cells);
  }
  std::shared_ptr<arrow::Array> operator()(const Cells<double>& cells) const {
    return array_of<arrow::DoubleBuilder>(cells);
  }
  std::shared_ptr<arrow::Array> operator()(const Cells<bool>& cells) const {
    return array_of<arrow::BooleanBuilder>(cells);
  }
  std::shared_ptr<arrow::Array> operator()(const Cells<std::string>& cells) const {
    return array_of<arrow::StringBuilder>(cells);
  }
};

std::string bytes_of(const std::vector<TableColumn>& columns) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const TableColumn& column : columns) {
    arrays.push_back(std::visit(ToArray(), column.cells));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  check(table->ValidateFull());
  auto stream = arrow::io::BufferOutputStream::Create();
  check(stream.status());
  constexpr int64_t kRowsPerGroup = 1 << 18;
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), *stream, kRowsPerGroup,
                                   parquet_properties()));
  const auto buffer = (*stream)->Finish();
  check(buffer.status());
  return (*buffer)->ToString();
}

}  // namespace
}  // namespace convoy::data

extern "C" __attribute__((visibility("default"))) std::string* convoy_parquet_bytes(
    const std::vector<convoy::data::TableColumn>& columns) {
  try {
    return new std::string(convoy::data::bytes_of(columns));
  } catch (const std::bad_alloc&) {
    throw convoy::DataError("the table needs more memory than there is",
                            {.hint = "write CSV instead: name an output that ends in .csv"});
  } catch (const std::exception& error) {
    throw convoy::DataError(fmt::format("the table cannot be written as Parquet: {}", error.what()),
                            {.hint = "write CSV instead: name an output that ends in .csv"});
  }
}

static_assert(std::is_same_v<decltype(convoy_parquet_bytes), convoy::data::ParquetBytesFunction>);
