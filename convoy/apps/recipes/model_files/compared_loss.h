// SPDX-License-Identifier: Apache-2.0
//
// The loss of a model on a few rows, for comparison with a changed copy of the model.
#pragma once

#include <string>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/log.h"
#include "convoy/data/datasets/tokens/token_dataset.h"

namespace convoy::recipes {

// The first rows of `data`, a file of any schema with the masks of training; when `data` is empty,
// a built-in text in which every token counts. Rows are cut to the model's positions. Throws
// DataError.
data::TokenDataset compared_rows(const LoadedModel& loaded, const std::string& data,
                                 const Log& log);

// Nats per supervised token, for the model as loaded: with its adapter, in its compute type.
double mean_loss(nn::CausalLm& model, const data::TokenDataset& rows);

}  // namespace convoy::recipes
