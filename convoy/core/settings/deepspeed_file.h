// SPDX-License-Identifier: Apache-2.0
//
// DeepSpeed's JSON file as our settings: stages as strategies, offload, batch sizes, optimizer,
// schedule, precision, clipping. "auto" and missing values are left to the other sources.
#pragma once

#include <cstdint>
#include <optional>

#include "convoy/core/config/imports.h"
#include "convoy/core/settings/peer_file.h"

namespace convoy::settings {

// Values that can be checked only when the ranks and the other settings are resolved.
struct DeepSpeedFacts {
  std::optional<config::ImportedValue> train_batch_size;
  std::optional<config::ImportedValue> accumulation_alone;  // without either batch size
  std::optional<config::ImportedValue> warmup_steps;
  std::optional<config::ImportedValue> schedule_steps;
  std::optional<config::ImportedValue> optimizer;
  // The value of train.bf16 or train.fp16. Both compute the same here; only the number of bits can
  // be contradicted.
  std::optional<config::ImportedValue> precision;
};

// `value`: the path of the file, or the sections themselves, as our key `key` has them. `ranks`: 0
// when unknown. Adds errors to the list; throws ConfigError for a file that cannot be read.
DeepSpeedFacts read_deepspeed(const config::Node& value, const std::string& key, int64_t ranks,
                              config::Imported& imported, config::ErrorList& errors);

// Every key of the format (DeepSpeed 0.19).
const std::vector<PeerKey>& deepspeed_keys();

}  // namespace convoy::settings
