// SPDX-License-Identifier: Apache-2.0
//
// `convoy models export` and `convoy models convert`: models for other programs, and back.
#pragma once

#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/model_export_flags.h"

namespace convoy::recipes {

// Throws ConfigError, DataError with the reason when the format does not support the model,
// NumericError, IoError.
void export_model_file(const settings::ModelExportFlags& flags, const Log& log);

// `source`: a GGUF file; `output`: the folder to write.
void convert_model_file(const std::string& source, const std::string& output,
                        const settings::ModelConvertFlags& flags, const Log& log);

}  // namespace convoy::recipes
