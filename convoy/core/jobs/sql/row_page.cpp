// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/sql/row_page.h"

namespace convoy::jobs {

void RowPage::clear(size_t num_columns) {
  num_columns_ = num_columns;
  values_.clear();
  text_.clear();
}

void RowPage::add(std::string_view text, Kind kind) {
  values_.push_back({static_cast<int64_t>(text_.size()), text.size(), kind});
  text_.append(text);
}

void RowPage::add(const SqlRow& row) {
  for (const SqlValue& value : row) {
    if (const int64_t* const number = std::get_if<int64_t>(&value))
      add(*number);
    else if (const std::string* const text = std::get_if<std::string>(&value))
      add(*text, Kind::Text);
    else
      add(std::get<Bytes>(value).data, Kind::Bytes);
  }
}

void SqlSession::run_into(std::string_view sql, std::span<const SqlValue> parameters,
                          std::string_view kinds, RowPage& page) {
  const std::vector<SqlRow> rows = run(sql, parameters);
  page.clear(kinds.size());
  for (const SqlRow& row : rows) page.add(row);
}

}  // namespace convoy::jobs
