// SPDX-License-Identifier: Apache-2.0
//
// A first configuration from four answers, with the reasons for its values beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/sizing/known_models.h"

namespace convoy::apps {

struct StarterAnswers {
  std::string model;
  std::string data;
  std::string hardware;                // auto, or the name of a known machine
  std::string mode;                    // as tuning.mode
  bool data_may_be_elsewhere = false;  // though the hardware is here
};

// Facts of the model and the data. A fact is empty or 0 when its files are not on this host.
struct StarterFacts {
  std::optional<architecture::DecoderSpec> model = {};
  std::string schema = {};         // of the first row
  bool plain_text = false;         // rows to continue, not to answer
  int64_t looked_at_rows = 0;      // of the data
  int64_t longest_row_tokens = 0;  // among these
  sizing::Machine machine = {};
};

// `auto` is the machine this runs on. Throws ConfigError for hardware that nobody knows.
sizing::Machine machine_of(const std::string& hardware);

// Throws Error for a model that is not here or can not be trained.
void check_model(const std::string& model);

// Throws Error for rows that are not here, or whose first ones can not be read.
void check_data(const std::string& data);

// Looks at what the answers name. `notes`: a sentence for what is not here. Throws DataError for a
// model or data that are here and cannot be used, ConfigError for hardware that nobody knows.
StarterFacts look_at(const StarterAnswers& answers, std::vector<std::string>& notes);

// The YAML text. It passes `convoy config check`.
std::string starter_config(const StarterAnswers& answers, const StarterFacts& facts);

}  // namespace convoy::apps
