// SPDX-License-Identifier: Apache-2.0
//
// Folders that other programs leave while they train: what of them can be a start here, and what
// can not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace convoy::io {

// Of a checkpoint of transformers' Trainer: what is taken of it, and what stays behind. Nothing for
// another folder.
std::optional<std::string> trainer_checkpoint_notice(const std::filesystem::path& folder);

// Throws DataError with the way to a model folder where `folder` is a checkpoint of DeepSpeed.
void refuse_deepspeed_checkpoint(const std::filesystem::path& folder);

// Throws DataError with the newest checkpoint where `folder`, which has no model of its own, is
// what transformers' Trainer writes into: checkpoint-100, checkpoint-200, ...
void refuse_trainer_output(const std::filesystem::path& folder);

// Of a PEFT adapter's folder, which has no config.json: the name of its base model. Nothing for
// another folder. Throws DataError where the adapter does not say.
std::optional<std::string> base_of_adapter_folder(const std::filesystem::path& folder);

}  // namespace convoy::io
