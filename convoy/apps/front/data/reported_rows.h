// SPDX-License-Identifier: Apache-2.0
//
// The rows that a check of a data set reports: the first ones are printed, all of them go into the
// report file.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/settings/data_flags.h"
#include "convoy/data/datasets/chain/row_pass.h"
#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::apps {

class ReportedRows {
 public:
  // `passes`: data sets that the report file must not replace. Throws ConfigError.
  ReportedRows(const Context& context, const settings::DataReportFlags& flags,
               const std::vector<data::RowPass>& passes);

  // `text`: the line for people; with --json `row` is printed.
  void add(const nlohmann::ordered_json& row, const std::string& text);
  // Completes the report, and returns the number of rows.
  int64_t finish();

 private:
  bool is_json_;
  int64_t most_shown_;
  int64_t count_ = 0;
  std::unique_ptr<data::RowWriter> writer_;
};

}  // namespace convoy::apps
