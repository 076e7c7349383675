// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encoded_rows.h"

#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::data {

EncodedRows::EncodedRows(std::filesystem::path path, SchemaConfig config, BadRows bad_rows,
                         RowUse use, Encode encode)
    : reader_(std::move(path), std::move(config), bad_rows, use), encode_(std::move(encode)) {}

std::optional<EncodedSample> EncodedRows::next() {
  while (std::optional<Sample> sample = reader_.next()) {
    try {
      EncodedRow row = encode_(*sample);
      row.source_index = sample->index;
      rows_own_bos_ += row.own_bos;
      losses_.add(*sample, row);
      return EncodedSample{std::move(*sample), std::move(row)};
    } catch (const DataError& error) {
      reader_.report_bad_row(error, sample->index);
    }
  }
  return std::nullopt;
}

void EncodedRows::finish(const Log& log, LostParts lost) const {
  reader_.require_samples();
  if (const std::string bad = reader_.bad_rows().summary(); !bad.empty()) log.warning(bad);
  if (lost == LostParts::Unnamed) {
    if (const std::string unread = reader_.unread_columns(); !unread.empty()) log.warning(unread);
    for (const std::string& warning : row_warnings(losses_, 0, Truncation::KeepStart))
      log.warning(warning);
  }
  if (const std::string ranked = reader_.ranked_lists(); !ranked.empty()) log.info(ranked);
  if (rows_own_bos_ > 0) log.info(own_bos_notice(rows_own_bos_));
}

}  // namespace convoy::data
