// SPDX-License-Identifier: Apache-2.0
//
// The model card of a trained model: a README.md with the hub's front matter
// (huggingface.co/docs/hub/model-cards), from the record of its run.
#pragma once

#include <filesystem>
#include <string>

namespace convoy::apps {

// `run`: the run folder. `model`: the folder of the trained model or adapter. `name`: the title.
// Names files of rows and local models by their last part only. Throws DataError for a run without
// a record.
std::string model_card(const std::filesystem::path& run, const std::filesystem::path& model,
                       const std::string& name);

}  // namespace convoy::apps
