// SPDX-License-Identifier: Apache-2.0
//
// Training folders of other programs: tells which parts Convoy can start from, and which not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::io {

// For a checkpoint of transformers' Trainer: a sentence that says which parts are used and which
// are not. Empty for another folder.
std::optional<std::string> trainer_checkpoint_notice(const std::filesystem::path& folder);

// Throws DataError that names the way to a model folder when `folder` is a DeepSpeed checkpoint.
void refuse_deepspeed_checkpoint(const std::filesystem::path& folder);

// Throws DataError that names the newest checkpoint when `folder` has no model of its own and is
// the output folder of transformers' Trainer: checkpoint-100, checkpoint-200, ...
void refuse_trainer_output(const std::filesystem::path& folder);

// Throws DataError that names the adapter or the model in `folder` when it is the folder of one of
// Convoy's own runs.
void refuse_run_folder(const std::filesystem::path& folder);

// For a PEFT adapter's folder without config.json: the name of its base model. Empty for another
// folder. Throws DataError when the adapter does not name its base.
std::optional<std::string> base_of_adapter_folder(const std::filesystem::path& folder);

}  // namespace convoy::io
