// SPDX-License-Identifier: Apache-2.0
//
// What a run of `convoy process` asks of its rows before it leaves anything on the disk.
#pragma once

#include <optional>
#include <string>

#include "convoy/data/datasets/dataset.h"
#include "convoy/farm/process/model_facts.h"
#include "convoy/farm/process/pipeline_plan.h"

namespace convoy::apps {

// Each column that settings or prompts name is in some row of the data set, and some selected row
// can be used. Reads as far as it must for that, mostly one row. Returns the first prompt as the
// model reads it; nothing where the stages ask for no text. Throws DataError that names what is
// missing.
std::optional<std::string> check_rows(const data::Dataset& dataset,
                                      const process::PipelinePlan& plan,
                                      const process::ModelFacts& facts);

}  // namespace convoy::apps
