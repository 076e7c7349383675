// SPDX-License-Identifier: Apache-2.0
//
// The rows of several data sets as one stream: one set after another, or drawn by weight as in task
// mixed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convoy/data/datasets/batches/mixed_items.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {

struct WeighedSet {
  Dataset dataset;
  std::optional<double> weight = {};
};

// Either every set has a weight above 0, or none has one. The rows of a set stay in their order.
// With weights, a set that ends begins again until `stop` applies, and an unreadable row counts as
// a drawn one. One thread.
class MixedRows : public RowSource {
 public:
  // With weights, counts the rows of every set first. Throws ConfigError, DataError.
  MixedRows(std::vector<WeighedSet> sets, MixStop stop);

  std::optional<Row> next() override;
  std::optional<RawRow> next_raw() override;
  bool row_is_lost() const override { return row_is_lost_; }

  const std::vector<int64_t>& drawn() const { return drawn_; }  // rows of each set so far

 private:
  std::optional<size_t> next_set() const;
  void end_of(size_t set);

  std::vector<WeighedSet> sets_;
  std::vector<std::unique_ptr<RowSource>> sources_;
  std::vector<int64_t> drawn_;
  std::optional<MixSchedule> schedule_;  // empty without weights
  size_t current_ = 0;                   // index of the set that is read, without weights
  int64_t index_ = 0;                    // index of the next row
  bool row_is_lost_ = false;
};

}  // namespace convoy::data
