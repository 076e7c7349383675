// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/unwritten.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr const char* kCalls = "tool_calls";
constexpr std::array<const char*, 3> kReasoning = {"reasoning_content", "reasoning", "thinking"};

bool is_blank(const ordered_json& text) {
  return text.is_null() ||
         (text.is_string() && trimmed(text.get_ref<const std::string&>(), " \t\r\n").empty());
}

bool has_calls(const ordered_json& message) {
  return message.is_object() && message.contains(kCalls) && !message[kCalls].empty();
}

// True when the conversation without a part is rendered as `full`. If the template refuses it, the
// template reads that part.
bool is_same(const RenderWhole& render, const ordered_json& messages, const ordered_json& variables,
             const std::string& full) {
  try {
    return render(messages, variables) == full;
  } catch (const DataError&) {
    return false;
  }
}

bool leaves_out_variable(const char* name, const RenderWhole& render, const ordered_json& messages,
                         const ordered_json& variables, const std::string& full) {
  if (!variables.is_object() || !variables.contains(name) || variables[name].empty()) return false;
  ordered_json without = variables;
  without.erase(name);
  return is_same(render, messages, without, full);
}

// True when some message has one of the members, and the template writes none of these members.
template <size_t count>
bool leaves_out_members(const std::array<const char*, count>& members, const RenderWhole& render,
                        const ordered_json& messages, const ordered_json& variables,
                        const std::string& full) {
  bool any = false;
  ordered_json without;
  for (size_t index = 0; index < messages.size(); ++index) {
    if (!messages[index].is_object()) continue;
    for (const char* member : members) {
      const auto found = messages[index].find(member);
      if (found == messages[index].end() || found->empty() || is_blank(*found)) continue;
      if (!any) without = messages;
      any = true;
      without[index].erase(member);
    }
  }
  return any && is_same(render, without, variables, full);
}

}  // namespace

bool has_blank_content(const ordered_json& message) {
  const auto content = message.find("content");
  if (content == message.end() || !content->is_array())
    return content == message.end() || is_blank(*content);
  return std::all_of(content->begin(), content->end(), [](const ordered_json& part) {
    return !part.is_object() || !part.contains("text") || is_blank(part["text"]);
  });
}

Unwritten find_unwritten(const RenderWhole& render, const ordered_json& messages,
                         const ordered_json& variables, const std::string& full,
                         size_t first_message) {
  Unwritten unwritten{
      .tools = leaves_out_variable("tools", render, messages, variables, full),
      .documents = leaves_out_variable("documents", render, messages, variables, full),
      .calls = leaves_out_members(std::array{kCalls}, render, messages, variables, full),
      .reasoning = leaves_out_members(kReasoning, render, messages, variables, full)};
  for (size_t index = first_message; index < messages.size(); ++index) {
    const ordered_json& message = messages[index];
    if (!message.is_object() || message.value("role", ordered_json()) != "assistant" ||
        !has_blank_content(message))
      continue;
    if (has_calls(message) && !unwritten.calls) continue;
    ordered_json without = messages;
    for (const auto& [key, value] : message.items())
      if (key != "role" && key != "content" && key != kCalls) without[index].erase(key);
    if (without[index] == message || is_same(render, without, variables, full))
      unwritten.answers.push_back(index);
  }
  return unwritten;
}

}  // namespace convoy::data
