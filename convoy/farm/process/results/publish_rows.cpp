// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/publish_rows.h"

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/time_text.h"
#include "convoy/data/datasets/formats/byte_stream.h"
#include "convoy/data/datasets/formats/row_writer.h"
#include "convoy/data/datasets/sources/output_check.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/process/pipeline/row_values.h"
#include "convoy/farm/process/results/training_rows.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

// Puts the timestamp after the score, where the reference program has it.
Json with_timestamp(Json value, const Json& timestamp) {
  Json row = Json::object();
  for (auto& [name, column] : value.items()) {
    row[name] = std::move(column);
    if (name == "quality_score") row["timestamp"] = timestamp;
  }
  return row;
}

Json value_of(PublishedRow& row, const ProblemFields& fields,
              const std::vector<FilterCondition>& conditions) {
  if (!row.input) {
    Json value = std::move(row.stored.row.value);
    apply_conditions(conditions, value);
    return value;
  }
  Json value = input_only_value(*row.input, "engine_error", row.failure);
  value["metadata"]["tries"] = row.tries;
  try {
    const RowFields known = fields.read(row.input->value);
    value["problem"] = known.problem;
    value["gold"] = golds_json(golds_of(known));
  } catch (const DataError&) {
    // The row's problem cannot be read. The row keeps the state "engine_error", since that error
    // came first.
  }
  return value;
}

}  // namespace

std::vector<std::filesystem::path> output_files(const settings::ProcessOutputSettings& output) {
  const std::filesystem::path path = output.path;
  std::vector<std::filesystem::path> files = {path};
  std::filesystem::path plain = data::without_compression(path);
  if (!output.csv || plain.extension() != ".json") return files;
  const std::filesystem::path packing = plain == path ? "" : path.extension();
  files.push_back(plain.replace_extension(".csv") += packing);
  return files;
}

namespace {

std::vector<std::filesystem::path> all_files(const settings::ProcessSettings& settings) {
  std::vector<std::filesystem::path> files = output_files(settings.output);
  for (const std::filesystem::path& file : training_files(settings)) files.push_back(file);
  return files;
}

}  // namespace

void check_outputs(const settings::ProcessSettings& settings, const data::Dataset& dataset) {
  std::vector<std::filesystem::path> files = all_files(settings);
  std::set<std::filesystem::path> named;
  for (const std::filesystem::path& file : files) {
    data::require_row_format(file);
    if (!named.insert(std::filesystem::absolute(file).lexically_normal()).second)
      throw ConfigError(fmt::format("two outputs of the run have the name {}", file.string()),
                        {.file = file.string(),
                         .hint = "name different files with --output, --pairs and --answers"});
  }
  files.push_back(data::manifest_path(settings.output.path));
  data::refuse_outputs_among_inputs(files, dataset.name, dataset.files);
}

void require_outputs(const settings::ProcessSettings& settings) {
  for (const std::filesystem::path& file : all_files(settings)) {
    data::require_row_output(file);
    // Permissions do not show whether a file system accepts files, so a file is created as a trial.
    AtomicFile(file).write("[");
  }
}

Publication publish_rows(jobs::JobStore& store, const RowRun& run, const PipelinePlan& plan) {
  const settings::ProcessSettings& settings = plan.settings;
  std::vector<std::unique_ptr<data::RowWriter>> writers;
  for (const std::filesystem::path& file : output_files(settings.output))
    writers.push_back(data::create_rows(file));
  TrainingRows training_rows(plan);
  // With engine.deterministic, two runs of the same rows must write the same bytes.
  const Json timestamp =
      settings.engine.deterministic ? Json(nullptr) : Json(utc_time_text(std::time(nullptr)));
  const ProblemFields fields = problem_fields(settings.data);
  Publication publication;
  publication.reopened = for_each_finished(store, run, [&](PublishedRow& row) {
                           const Json value =
                               with_timestamp(value_of(row, fields, plan.conditions), timestamp);
                           publication.report.add(value);
                           if (value.at("state") == "rejected") return;
                           for (const auto& writer : writers) writer->write(value);
                           training_rows.add(value);
                         }).reopened;
  if (publication.reopened > 0) return publication;
  for (const auto& writer : writers) publication.files.push_back(data::record_of(writer->finish()));
  for (data::FileRecord& file : training_rows.finish())
    publication.files.push_back(std::move(file));
  publication.training_rows = training_rows.report();
  return publication;
}

}  // namespace convoy::process
