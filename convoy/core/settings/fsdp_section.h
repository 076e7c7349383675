// SPDX-License-Identifier: Apache-2.0
//
// Reads the FSDP settings of accelerate and of transformers' TrainingArguments as our settings
// parallel.*.
#pragma once

#include <map>
#include <string>

#include "convoy/core/settings/peer_file.h"

namespace convoy::settings {

// The keys of fsdp_config. `section`: "fsdp_config.fsdp_" for accelerate's, "" for transformers'.
std::vector<PeerKey> fsdp_keys(const std::string& section);

// Reads the FSDP keys of `file`.
void read_fsdp_keys(PeerFile& file, const std::string& section);

// Reads train.fsdp and train.fsdp_config from our sources.
void read_fsdp_arguments(const std::map<std::string, config::Node>& found,
                         config::Imported& imported, config::ErrorList& errors);

}  // namespace convoy::settings
