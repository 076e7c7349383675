// SPDX-License-Identifier: Apache-2.0
//
// Rewards: numbers that say how good texts of the model are. One file per kind, one line each in
// rewards.cpp. Without LibTorch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/settings/reward_settings.h"

namespace convoy::rewards {

// A text of the model and what it answers.
struct JudgedText {
  std::string prompt;                // as the user wrote it: the problem
  std::string text;                  // without end token and special tokens
  std::vector<std::string> answers;  // reference answers; any of them is right
  int64_t tokens = 0;                // in the text, with its end token
  bool is_truncated = false;         // the limit of new tokens cut it
  bool begins_in_think = false;      // the rendered prompt ended in "<think>"
  nlohmann::ordered_json row;        // the row of the data, whole
  int64_t row_number = 0;            // from 1, for error texts
  int64_t sample = 0;
};

class Reward {
 public:
  virtual ~Reward() = default;
  // One number per text, in their order. Blocks. There is no default value: throws DataError that
  // names the row of a text that gets no number, ConfigError for a server that refuses every
  // request, NetworkError if a server does not answer, or StopRequest once `stop_requested` is
  // true.
  virtual std::vector<double> values(std::span<const JudgedText> texts,
                                     const std::function<bool()>& stop_requested) = 0;
};

// Starts the program of a command reward, which ends with the thread that calls this. Asks the
// server of a judge for its models. Throws ConfigError also for what the reward's files hold, and
// NetworkError.
std::unique_ptr<Reward> make_reward(const settings::RewardSettings& settings);

}  // namespace convoy::rewards
