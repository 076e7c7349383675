// SPDX-License-Identifier: Apache-2.0
//
// The result of a training: an adapter, or a model folder.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/model/models/checkpoint_rest.h"
#include "convoy/model/models/result_ends.h"

namespace convoy::recipes {

struct Result {
  LoadedModel& loaded;
  const std::string& name;  // name of the base model, as the user gave it
  const telemetry::RunFolder& folder;
  at::ScalarType dtype;  // type of a model's files
  models::Extent extent;
  const models::ResultEnds& ends;
  bool writes;  // one rank; the others take part only if values are sharded
};

// Collective when the model's parameters are sharded: they are gathered while they are written.
// Throws IoError, NumericError.
void export_result(const Result& result, const Log& log);

}  // namespace convoy::recipes
