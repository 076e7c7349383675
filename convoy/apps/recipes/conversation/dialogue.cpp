// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation/dialogue.h"

namespace convoy::recipes {

void Dialogue::set_system_prompt(const std::string& text) {
  if (first_turn_ > 0) messages_.erase(0);
  first_turn_ = text.empty() ? 0 : 1;
  if (!text.empty())
    messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
}

std::string Dialogue::take_last_question() {
  while (messages_.back()["role"] != "user") messages_.erase(messages_.size() - 1);
  const std::string question = messages_.back()["content"];
  messages_.erase(messages_.size() - 1);
  return question;
}

void Dialogue::reset() {
  while (has_turns()) messages_.erase(messages_.size() - 1);
}

void Dialogue::add(const char* role, const std::string& content) {
  messages_.push_back({{"role", role}, {"content", content}});
}

}  // namespace convoy::recipes
