// SPDX-License-Identifier: Apache-2.0
//
// Writes a first configuration from four answers, with the reason for each value beside it.
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
  std::string mode;                    // a value of tuning.mode
  std::string task = "auto";           // auto: the first row decides
  bool data_may_be_elsewhere = false;  // even when `hardware` is auto
};

// Facts of the model and the data. A fact is empty or 0 when its files are not on this host.
struct StarterFacts {
  std::optional<architecture::DecoderSpec> model = {};
  std::string task = "sft";    // task that learns from the rows
  std::string schema = {};     // schema of the first row
  int64_t looked_at_rows = 0;  // rows of the data that were read
  bool looked_at_all_rows = true;
  // Numbers of tokens of the rows read, ascending. Empty when the model's folder is not on this
  // host.
  std::vector<int64_t> row_tokens = {};
  sizing::Machine machine = {};
};

// `auto` is this machine. Throws ConfigError for unknown hardware.
sizing::Machine machine_of(const std::string& hardware);

// Throws Error for a model that is missing or cannot be trained.
void check_model(const std::string& model);

// Throws Error for rows that are missing, or whose first rows cannot be read.
void check_data(const std::string& data);

// Reads the model and data in the answers. `notes` receives one sentence for each that is missing.
// Throws DataError for a model or data that exist and cannot be used, ConfigError for unknown
// hardware.
StarterFacts look_at(const StarterAnswers& answers, std::vector<std::string>& notes);

// The YAML text. It passes `convoy config check`.
std::string starter_config(const StarterAnswers& answers, const StarterFacts& facts);

}  // namespace convoy::apps
