// SPDX-License-Identifier: Apache-2.0
//
// The messages of a conversation: a system prompt, and turns of question and answer. Plain data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace convoy::recipes {

class Dialogue {
 public:
  using Json = nlohmann::ordered_json;

  explicit Dialogue(const std::string& system_prompt) { set_system_prompt(system_prompt); }

  const Json& messages() const { return messages_; }
  bool has_turns() const { return std::ssize(messages_) > first_turn_; }

  // Keeps the turns. Empty: no system prompt.
  void set_system_prompt(const std::string& text);
  void ask(const std::string& question) { add("user", question); }
  void answer(const std::string& text) { add("assistant", text); }
  // Removes the last question and its answer, and returns the question. There must be a turn.
  std::string take_last_question();
  void reset();  // the system prompt stays

 private:
  void add(const char* role, const std::string& content);

  Json messages_ = Json::array();
  int64_t first_turn_ = 0;  // 1 after a system prompt, else 0
};

}  // namespace convoy::recipes
