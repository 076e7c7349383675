// SPDX-License-Identifier: Apache-2.0
//
// The rows of one answer in two reusable blocks of memory: a listing of a million rows makes no
// string per value. Plain data; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/jobs/sql/session.h"

namespace convoy::jobs {

class RowPage {
 public:
  enum class Kind : uint8_t { Integer, Text, Bytes };

  // One row. Views are valid until the page is cleared.
  class Row {
   public:
    Row(const RowPage& page, size_t first) : page_(page), first_(first) {}
    size_t size() const { return page_.num_columns_; }
    Kind kind(size_t column) const { return page_.values_[first_ + column].kind; }
    const int64_t& integer(size_t column) const { return page_.values_[first_ + column].number; }
    std::string_view text(size_t column) const {
      const Value& value = page_.values_[first_ + column];
      return {page_.text_.data() + value.number, value.num_bytes};
    }

   private:
    const RowPage& page_;
    size_t first_;
  };

  void clear(size_t num_columns);
  void add(int64_t number) { values_.push_back({number, 0, Kind::Integer}); }
  void add(std::string_view text, Kind kind);
  void add(const SqlRow& row);

  size_t num_rows() const { return num_columns_ == 0 ? 0 : values_.size() / num_columns_; }
  int64_t text_bytes() const { return static_cast<int64_t>(text_.size()); }
  Row row(size_t index) const { return {*this, index * num_columns_}; }

 private:
  struct Value {
    int64_t number;  // or the position where the text begins
    size_t num_bytes;
    Kind kind;
  };

  size_t num_columns_ = 0;
  std::vector<Value> values_;
  std::string text_;
};

}  // namespace convoy::jobs
