// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/mixed_rows.h"

#include <algorithm>
#include <utility>

namespace convoy::data {

MixedRows::MixedRows(std::vector<WeighedSet> sets, MixStop stop) : sets_(std::move(sets)) {
  const auto weighed = std::count_if(sets_.begin(), sets_.end(),
                                     [](const WeighedSet& set) { return set.weight.has_value(); });
  if (weighed != 0 && weighed != std::ssize(sets_))
    throw ConfigError(
        fmt::format("{} of {} data sets have a weight", weighed, sets_.size()),
        {.hint = "give each one, as in a.jsonl=0.7 b.jsonl=0.3, or none: then every row is "
                 "written once"});
  MixConfig mix{.stop = stop};
  for (const WeighedSet& set : sets_) {
    sources_.push_back(open_dataset(set.dataset));
    if (weighed > 0)
      mix.parts.push_back({.name = set.dataset.name,
                           .num_rows = open_dataset(set.dataset)->skip(INT64_MAX),
                           .weight = *set.weight});
  }
  if (weighed > 0) schedule_.emplace(mix);
  drawn_.resize(sets_.size(), 0);
}

std::optional<size_t> MixedRows::next_set() const {
  if (!schedule_) return current_ < sets_.size() ? std::optional(current_) : std::nullopt;
  if (index_ >= schedule_->epoch_rows()) return std::nullopt;
  return schedule_->at(index_).part;
}

void MixedRows::end_of(size_t set) {
  if (schedule_) {
    sources_[set] = open_dataset(sets_[set].dataset);
  } else {
    ++current_;
  }
}

std::optional<RawRow> MixedRows::next_raw() {
  row_is_lost_ = false;
  while (const std::optional<size_t> set = next_set()) {
    RowSource& source = *sources_[*set];
    try {
      if (std::optional<RawRow> raw = source.next_raw()) {
        raw->row.index = index_++;
        ++drawn_[*set];
        return raw;
      }
    } catch (const DataError&) {
      row_is_lost_ = source.row_is_lost();
      index_ += row_is_lost_;
      throw;
    }
    end_of(*set);
  }
  return std::nullopt;
}

std::optional<Row> MixedRows::next() {
  std::optional<RawRow> raw = next_raw();
  if (!raw) return std::nullopt;
  row_is_lost_ = true;  // in case the text is no JSON
  return parse_row(std::move(*raw));
}

}  // namespace convoy::data
