// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/unwritten.h"

#include <algorithm>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr const char* kCalls = "tool_calls";

bool is_blank(const ordered_json& text) {
  return text.is_null() ||
         (text.is_string() && trimmed(text.get_ref<const std::string&>(), " \t\r\n").empty());
}

bool has_calls(const ordered_json& message) {
  return message.is_object() && message.contains(kCalls) && !message[kCalls].empty();
}

// A template that refuses the conversation without a part reads that part.
bool is_same(const RenderWhole& render, const ordered_json& messages, const ordered_json& variables,
             const std::string& full) {
  try {
    return render(messages, variables) == full;
  } catch (const DataError&) {
    return false;
  }
}

bool leaves_out_tools(const RenderWhole& render, const ordered_json& messages,
                      const ordered_json& variables, const std::string& full) {
  if (!variables.is_object() || !variables.contains("tools") || variables["tools"].empty())
    return false;
  ordered_json without = variables;
  without.erase("tools");
  return is_same(render, messages, without, full);
}

bool leaves_out_calls(const RenderWhole& render, const ordered_json& messages,
                      const ordered_json& variables, const std::string& full) {
  if (std::none_of(messages.begin(), messages.end(), has_calls)) return false;
  ordered_json without = messages;
  for (ordered_json& message : without)
    if (message.is_object()) message.erase(kCalls);
  return is_same(render, without, variables, full);
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
  Unwritten unwritten{.tools = leaves_out_tools(render, messages, variables, full),
                      .calls = leaves_out_calls(render, messages, variables, full)};
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
