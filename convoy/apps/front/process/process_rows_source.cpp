// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_rows_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::apps {
namespace {

using Json = nlohmann::ordered_json;

// Valid JSON text: invalid UTF-8 is replaced.
Json sound_text(const std::string& bytes) {
  if (bytes.empty()) return nullptr;
  return Json::parse(Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace));
}

class SelectedRows {
 public:
  SelectedRows(const data::Dataset& dataset, const settings::ProcessDataSettings& data)
      : keeps_bad_rows_(data.bad_rows == "keep"),
        fields_(process::problem_fields(data)),
        rows_(data::open_dataset(dataset, {.first = data.start_from, .count = data.num_examples})),
        next_index_(data.start_from) {}

  std::optional<process::SourceRow> next() {
    try {
      std::optional<data::Row> row = rows_->next();
      if (!row) return std::nullopt;
      if (!keeps_bad_rows_) require_problem(*row);
      next_index_ = row->index + 1;
      return process::SourceRow{.source_index = row->index, .value = std::move(row->value)};
    } catch (const DataError& error) {
      if (!keeps_bad_rows_ || !rows_->row_is_lost()) throw;
      return process::SourceRow{.source_index = next_index_++,
                                .value = {{"unreadable_row", sound_text(rows_->lost_row())}},
                                .unreadable = error.sentence()};
    }
  }

 private:
  void require_problem(const data::Row& row) const {
    try {
      fields_.read(row.value);
    } catch (DataError& error) {
      error.location().file = row.file;
      error.location().line = row.line;
      throw;
    }
  }

  bool keeps_bad_rows_;
  process::ProblemFields fields_;
  std::unique_ptr<data::RowSource> rows_;
  int64_t next_index_;
};

}  // namespace

data::Dataset named_dataset(const settings::ProcessDataSettings& data) {
  const std::string& name = data.dataset_name.empty() ? data.dataset : data.dataset_name;
  if (name.empty())
    throw ConfigError("no data set given",
                      {.key = "data.dataset",
                       .hint = "--data KEY, HUB/NAME, FILE or FOLDER; `convoy process "
                               "--list-datasets` lists the keys, and --preset process-standard "
                               "names the processing guide's"});
  return data::find_dataset({.name = name, .config = data.config, .split = data.split});
}

process::RowStream selected_rows(const data::Dataset& dataset,
                                 const settings::ProcessDataSettings& data) {
  const auto rows = std::make_shared<SelectedRows>(dataset, data);
  return [rows] { return rows->next(); };
}

int64_t count_rows(const process::RowStream& rows) {
  int64_t count = 0;
  while (rows()) ++count;
  return count;
}

nlohmann::json selection_of(const data::Dataset& dataset,
                            const settings::ProcessDataSettings& data) {
  nlohmann::json selection = {{"start_from", data.start_from}, {"num_examples", "all"}};
  if (data.num_examples < 0) return selection;
  const int64_t end =
      data.start_from + std::min(data.num_examples, INT64_MAX - 1 - data.start_from);
  if (data::open_dataset(dataset)->skip(end + 1) > end)
    selection["num_examples"] = data.num_examples;
  return selection;
}

std::string dataset_text(const data::Dataset& dataset) {
  std::string text = dataset.hub_id.empty() ? dataset.name : dataset.hub_id;
  if (!dataset.config.empty()) text += " " + dataset.config;
  if (!dataset.split.empty()) text += " " + dataset.split;
  return fmt::format("{} ({}, from {})", text,
                     counted(static_cast<int64_t>(dataset.files.size()), "file"),
                     dataset.files.front().string());
}

}  // namespace convoy::apps
