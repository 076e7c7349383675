// SPDX-License-Identifier: Apache-2.0
//
// Writes the finished rows of a run to its output files, in the order of the data set and in
// bounded memory. A file appears complete or not at all.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/settings/process_settings.h"
#include "convoy/data/datasets/manifest.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/ledger/finished_rows.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"
#include "convoy/farm/process/results/run_report.h"

namespace convoy::process {

// The files that hold the rows: the output and, for a .json output, also a CSV file with the same
// compression.
std::vector<std::filesystem::path> output_files(const settings::ProcessOutputSettings& output);

// Checks the names of output_files() and training_files(). Throws ConfigError for a name without a
// known format, for two equal names, and for an output or manifest that is a file of the data set.
// Changes no file.
void check_outputs(const settings::ProcessSettings& settings, const data::Dataset& dataset);

// Throws if an output cannot be written. Call it before the rows are computed.
void require_outputs(const settings::ProcessSettings& settings);

struct Publication {
  std::vector<data::FileRecord> files = {};
  RunReport report = {};
  nlohmann::ordered_json training_rows = nullptr;  // see TrainingRows::report()
  // Number of rows that cannot be read and are open again; if not 0, nothing was published.
  int64_t reopened = 0;
};

// Also publishes rows that were finished under other conditions. A rejected row counts in the
// report but is in no file. Throws the errors of for_each_finished() and data::RowWriter.
Publication publish_rows(jobs::JobStore& store, const RowRun& run, const PipelinePlan& plan);

}  // namespace convoy::process
