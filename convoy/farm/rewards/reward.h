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

#include "convoy/core/base/error.h"
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

// The numbers that the reward gave to these texts may belong to others of them.
class MisplacedNumbers : public DataError {
 public:
  explicit MisplacedNumbers(const DataError& error) : DataError(error.what(), error.location()) {}
};

using TakeValue = std::function<void(size_t text, double value)>;

class Reward {
 public:
  virtual ~Reward() = default;
  // Calls `take` on this thread with the place of each text and its number, once per text, in any
  // order and as soon as the number is known. Blocks. There is no default value: throws DataError
  // that names the row of a text that gets no number, as MisplacedNumbers where the numbers before
  // it cannot be trusted, ConfigError for a server that refuses every request, NetworkError if a
  // server does not answer, StopRequest once `stop_requested` is true, or what `take` throws.
  virtual void ask(std::span<const JudgedText> texts, const std::function<bool()>& stop_requested,
                   const TakeValue& take) = 0;
  // One number per text, in their order. Throws as ask().
  std::vector<double> values(std::span<const JudgedText> texts,
                             const std::function<bool()>& stop_requested);
};

// Checks the files, the program and the address that the settings name; starts no program of the
// user and asks no server. Throws DataError for a file or a program that is missing, and
// ConfigError, with the key such as `reward[1].schema`.
void check_reward(const settings::RewardSettings& settings);

// How a training asks the rewards of a kind.
struct Asking {
  bool is_elsewhere = false;  // a program or a server, which is asked beside other work
  bool takes_lists = false;   // it gets texts as a list, so it may compare the texts of a problem
};
Asking asking_of(const settings::RewardSettings& settings);

// True if its mean is the accuracy of the answers.
bool checks_answers(const settings::RewardSettings& settings);

// A clause that says what the reward does with the reference answer of each row; empty: a row needs
// none. Throws as check_reward().
std::string use_of_answers(const settings::RewardSettings& settings);

// The columns of a row that the reward needs by name. Throws as check_reward().
std::vector<std::string> columns_of_reward(const settings::RewardSettings& settings);

// Starts the program of a command reward, which ends with the thread that calls this. Asks the
// server of a judge for its models. Throws as check_reward(), and NetworkError.
std::unique_ptr<Reward> make_reward(const settings::RewardSettings& settings);

}  // namespace convoy::rewards
