// SPDX-License-Identifier: Apache-2.0
//
// The rewards of a text: the entries of `reward` in a configuration. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

inline constexpr const char* kRewardHelp =
    "rewards of a text: a list of {kind: answer, format, length, command, http or judge, weight, "
    "name} and the keys of the kind; task distill measures them and does not learn from them";

// One entry of `reward`. The comments name the kinds that read a field.
struct RewardSettings {
  std::string kind;
  // For figures and records. Left out in the file: the kind, and a number where it occurs again.
  std::string name;
  std::string key = "reward";  // its place in the file, for errors: reward[1]
  double weight = 1;
  std::string schema;   // format: a JSON schema's file
  std::string pattern;  // format: a regular expression that the whole text matches
  // command: a program that reads a JSON line per text and writes a number per line
  std::string command;
  std::string url;                // http, judge
  std::string model;              // judge: its name at the server
  std::string prompt;             // judge: file of the prompt
  int64_t max_new_tokens = 1024;  // judge: longest reply in tokens
  int64_t target_tokens = 0;      // length: no reward is lost up to this
  int64_t most_tokens = 0;        // length: the whole reward is lost from here on
  std::string form = "reward";    // length: reward is 1 down to 0, punishment is 0 down to -1
  double timeout_s =
      60;  // command: for a number; http: for the texts of a request; judge: for a reply
};

// The accepted values of `kind`.
std::vector<std::string> reward_kinds();

// Throws ConfigError with the key at fault: an unknown kind or key, a key that the kind does not
// read, a missing one, a name twice.
std::vector<RewardSettings> rewards_of(const config::JsonList& list);

}  // namespace convoy::settings
