// SPDX-License-Identifier: Apache-2.0
//
// Checks of `convoy process` on its rows, before it writes anything to disk.
#pragma once

#include <optional>
#include <string>

#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/model_facts.h"
#include "convoy/farm/process/pipeline/pipeline_plan.h"

namespace convoy::apps {

// Checks that each column named by settings or prompts occurs in some row of the data set, and that
// some selected row is usable. Reads the first 100 rows, and further rows only until each column
// was found and one selected row is usable. Returns the first prompt as the model reads it; empty
// when no stage generates text. Throws DataError that names the missing column.
std::optional<std::string> check_rows(const data::Dataset& dataset,
                                      const process::PipelinePlan& plan,
                                      const process::ModelFacts& facts);

}  // namespace convoy::apps
