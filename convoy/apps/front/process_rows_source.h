// SPDX-License-Identifier: Apache-2.0
//
// The rows that a run is to process, from the data set that its settings name.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/process_settings.h"
#include "convoy/data/datasets/dataset.h"
#include "convoy/farm/process/ledger_plan.h"

namespace convoy::apps {

// Throws ConfigError where none is named; DataError.
data::Dataset named_dataset(const settings::ProcessDataSettings& data);

// The selected rows. One that can not be read becomes a row that says why and holds its text as
// `unreadable_row`, or ends the stream with its DataError, as data.bad_rows wants.
process::RowStream selected_rows(const data::Dataset& dataset,
                                 const settings::ProcessDataSettings& data);

// Which rows of the data set those are: settings that select the same ones give the same. An
// object.
nlohmann::json selection_of(const data::Dataset& dataset,
                            const settings::ProcessDataSettings& data);

int64_t count_rows(const process::RowStream& rows);

std::string dataset_text(const data::Dataset& dataset);

}  // namespace convoy::apps
