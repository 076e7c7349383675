// SPDX-License-Identifier: Apache-2.0
//
// The rows to process, from the data set in the settings.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/process_settings.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/ledger/ledger_plan.h"

namespace convoy::apps {

// Throws ConfigError when none is given; DataError.
data::Dataset named_dataset(const settings::ProcessDataSettings& data);

// The selected rows. Depending on data.bad_rows, an unreadable row becomes a row with the reason
// and its text as `unreadable_row`, or ends the stream with its DataError.
process::RowStream selected_rows(const data::Dataset& dataset,
                                 const settings::ProcessDataSettings& data);

// A JSON object that identifies the selected rows: settings that select equal rows give equal
// objects.
nlohmann::json selection_of(const data::Dataset& dataset,
                            const settings::ProcessDataSettings& data);

int64_t count_rows(const process::RowStream& rows);

std::string dataset_text(const data::Dataset& dataset);

}  // namespace convoy::apps
