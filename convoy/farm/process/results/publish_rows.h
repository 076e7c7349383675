// SPDX-License-Identifier: Apache-2.0
//
// The finished rows of a run as its output: in the order of the data set, in bounded memory, each
// file whole or not there.
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

// The files written for the rows: the output, and the CSV file beside a .json, compressed alike.
std::vector<std::filesystem::path> output_files(const settings::ProcessOutputSettings& output);

// Throws ConfigError where one of them or of training_files() has no format or is named twice, or
// one of them or their manifest is among the data set's files. Changes nothing.
void check_outputs(const settings::ProcessSettings& settings, const data::Dataset& dataset);

// Throws when one of them cannot be written. Called before the rows are computed.
void require_outputs(const settings::ProcessSettings& settings);

struct Publication {
  std::vector<data::FileRecord> files = {};
  RunReport report = {};
  nlohmann::ordered_json training_rows = nullptr;  // TrainingRows::report()
  int64_t reopened = 0;  // rows that cannot be read and are open again: then nothing was published
};

// Also publishes rows that were finished under other conditions. Rejected rows are in the report
// and in no file. Throws as for_each_finished() and data::RowWriter.
Publication publish_rows(jobs::JobStore& store, const RowRun& run, const PipelinePlan& plan);

}  // namespace convoy::process
