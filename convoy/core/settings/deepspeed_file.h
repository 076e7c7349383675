// SPDX-License-Identifier: Apache-2.0
//
// DeepSpeed's JSON file as settings of ours: stages as strategies, offload, batch sizes, optimizer,
// schedule, precision, clipping. What is "auto" or not there is left to the sources around it.
#pragma once

#include <cstdint>
#include <optional>

#include "convoy/core/config/imports.h"
#include "convoy/core/settings/peer_file.h"

namespace convoy::settings {

// What DeepSpeed checks only when it knows the ranks and the rest of the settings.
struct DeepSpeedFacts {
  std::optional<config::ImportedValue> train_batch_size;
  std::optional<config::ImportedValue> accumulation_alone;  // without either batch size
  std::optional<config::ImportedValue> warmup_steps;
  std::optional<config::ImportedValue> schedule_steps;
  std::optional<config::ImportedValue> optimizer;
  // Of train.bf16 or train.fp16, which compute the same here: only the number of bits can be
  // contradicted.
  std::optional<config::ImportedValue> precision;
};

// `value`: the path of the file, or the sections themselves, as `key` of ours has them. `ranks`: 0
// where not known. Adds what is wrong to the list; throws ConfigError for a file that can not be
// read.
DeepSpeedFacts read_deepspeed(const config::Node& value, const std::string& key, int64_t ranks,
                              config::Imported& imported, config::ErrorList& errors);

// Every key of the format (DeepSpeed 0.19).
const std::vector<PeerKey>& deepspeed_keys();

}  // namespace convoy::settings
