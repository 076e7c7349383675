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

// train_batch_size without a micro-batch size: the rows of a rank follow from the number of ranks.
struct OpenBatch {
  int64_t rows = 0;
  std::optional<int64_t> accumulation;
};

// Values that can be checked or decided only when the ranks and the other settings are known.
struct DeepSpeedFacts {
  std::optional<config::ImportedValue> train_batch_size;
  std::optional<OpenBatch> open_batch;                      // set when no micro-batch size is given
  std::optional<config::ImportedValue> accumulation_alone;  // accumulation without a batch size
  std::optional<config::ImportedValue> warmup_steps;
  std::optional<config::ImportedValue> schedule_steps;
  std::optional<config::ImportedValue> optimizer;
  // The value of train.bf16 or train.fp16. Both have the same effect in Convoy, so only a different
  // number of bits is a contradiction.
  std::optional<config::ImportedValue> precision;
};

// `value`: the value of our key `key`, which is the path of the file or its sections. Adds errors
// to the list; throws ConfigError for a file that cannot be read.
DeepSpeedFacts read_deepspeed(const config::Node& value, const std::string& key,
                              config::Imported& imported, config::ErrorList& errors);

// Computes train.batch_size from an open batch. `ranks`: number of ranks in the whole job; 0 means
// unknown, and then nothing is computed.
void decide_batch(DeepSpeedFacts& facts, int64_t ranks, config::Imported& imported,
                  config::ErrorList& errors);

// Every key of the format (DeepSpeed 0.19).
const std::vector<PeerKey>& deepspeed_keys();

}  // namespace convoy::settings
