// SPDX-License-Identifier: Apache-2.0
//
// trainer_state.json, byte for byte as the Hugging Face trainer writes it, for tools that plot it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace convoy::telemetry {

struct TrainerState {
  int64_t global_step = 0;
  int64_t max_steps = 0;
  double epoch = 0;
  int64_t num_train_epochs = 0;
  int64_t logging_steps = 1;
  int64_t eval_steps = 0;
  int64_t save_steps = 0;
  int64_t num_input_tokens_seen = 0;
  double total_flos = 0;
  std::optional<double> best_metric{};
  std::optional<int64_t> best_global_step{};
  std::optional<std::string> best_model_checkpoint{};
  nlohmann::json log_history = nlohmann::json::array();
};

// Indent 2, sorted keys, trailing newline.
std::string trainer_state_json(const TrainerState& state);

// Parses that text, for a resumed run. Throws CheckpointError.
TrainerState parse_trainer_state(std::string_view text);

// JSON as Python's json.dumps(value, indent=2, sort_keys=True) writes it: its float spelling, ASCII
// only, NaN allowed.
std::string python_json(const nlohmann::json& value);

}  // namespace convoy::telemetry
