// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/data/reported_rows.h"

#include <fmt/format.h>

#include <cstdio>

#include "convoy/apps/front/data/data_rows.h"

namespace convoy::apps {

using Json = nlohmann::ordered_json;

ReportedRows::ReportedRows(const Context& context, const settings::DataReportFlags& flags,
                           const std::vector<data::RowPass>& passes)
    : is_json_(context.common.json), most_shown_(flags.show) {
  if (flags.report.empty()) return;
  for (const data::RowPass& pass : passes) require_output(flags.report, pass, flags.force);
  writer_ = data::create_rows(flags.report);
}

void ReportedRows::add(const Json& row, const std::string& text) {
  if (writer_) writer_->write(row);
  if (count_++ >= most_shown_) return;
  fmt::print("{}\n", is_json_ ? row.dump(-1, ' ', false, Json::error_handler_t::replace) : text);
}

int64_t ReportedRows::finish() {
  if (writer_) writer_->finish();
  std::fflush(stdout);
  return count_;
}

}  // namespace convoy::apps
