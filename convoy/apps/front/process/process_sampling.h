// SPDX-License-Identifier: Apache-2.0
//
// The sampling settings of `convoy process` that the user leaves to the model.
#pragma once

#include <string>

#include "convoy/apps/front/process/process_config.h"
#include "convoy/core/settings/sampling_choice.h"

namespace convoy::apps {

// Sets the values of `generate`, and temperature and top_p of `improve`, that no source of the
// configuration gives and the model's generation_config.json does. Returns
// settings::sampling_line(), or served_sampling_line() where servers give the texts.
std::string settle_process_sampling(ProcessConfig& config, const settings::ModelSampling& model);

}  // namespace convoy::apps
