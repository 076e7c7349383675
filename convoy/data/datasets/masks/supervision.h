// SPDX-License-Identifier: Apache-2.0
//
// Selects the tokens of a row that count in the loss. The words are axolotl's (roles_to_train,
// train_on_eos).
#pragma once

#include <string>
#include <vector>

#include "convoy/core/settings/train_settings.h"

namespace convoy::data {

enum class Supervise {
  Auto,  // chat: the turns of `roles`; prompt and completion: the completion; text: every token
  Assistant,
  Last,  // only the last turn of `roles`
  All,   // every token except the first
};

// Selects the supervised tokens among the special tokens that close turns. For chat rows.
enum class LearntEnds {
  Turn,  // tokens that close learnt turns
  All,   // tokens that close any turn
  Last,  // the last one of the conversation
  None,
};

// The policy for an answer or a completion without text.
enum class EmptyAnswers {
  Skip,   // the answer is not learnt
  Learn,  // the token that ends the answer is learnt
  Error,
};

struct Supervision {
  Supervise supervise = Supervise::Auto;
  std::vector<std::string> roles = {"assistant"};  // not empty
  LearntEnds ends = LearntEnds::Turn;
  EmptyAnswers empty_answers = EmptyAnswers::Skip;

  // Makes a Supervision from the values of data.supervise, data.roles_to_train, data.train_on_eos
  // and data.empty_answers. Throws ConfigError, also for values that contradict each other.
  static Supervision named(const std::string& supervise,
                           const std::vector<std::string>& roles = {"assistant"},
                           const std::string& ends = "turn",
                           const std::string& empty_answers = "skip");
  static Supervision from(const settings::DataSettings& data);

  bool learns(const std::string& role) const;
};

}  // namespace convoy::data
