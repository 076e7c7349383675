// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/call_arguments.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/data/datasets/row_formats.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// Calls `visit` with the arguments of each tool call of a message that are a text; the call is
// {"function": {"arguments": ...}} or {"arguments": ...}. Stops when `visit` returns true.
template <class Message, class Visit>
bool visit_text_arguments(Message& message, const Visit& visit) {
  if (!message.is_object()) return false;
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return false;
  for (auto& call : *calls) {
    if (!call.is_object()) continue;
    const auto function = call.find("function");
    auto& named = function != call.end() && function->is_object() ? *function : call;
    const auto arguments = named.find("arguments");
    if (arguments != named.end() && arguments->is_string() && visit(*arguments)) return true;
  }
  return false;
}

std::string_view bare_text(const ordered_json& text) {
  return trimmed(text.get_ref<const std::string&>(), " \t\r\n");
}

// JSON may write letters beyond ASCII as they are or as escapes.
bool holds_quoted(const std::string& rendered, const ordered_json& text) {
  return rendered.find(text.dump()) != std::string::npos ||
         rendered.find(text.dump(-1, ' ', true)) != std::string::npos;
}

}  // namespace

bool has_text_arguments(const ordered_json& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const ordered_json& message) {
    return visit_text_arguments(message, [](const ordered_json&) { return true; });
  });
}

ordered_json with_object_arguments(const ordered_json& messages) {
  ordered_json decoded = messages;
  for (ordered_json& message : decoded)
    visit_text_arguments(message, [](ordered_json& arguments) {
      const std::string text(bare_text(arguments));
      try {
        ordered_json object = text.empty() ? ordered_json::object() : parse_json_row(text, {});
        if (object.is_object()) arguments = std::move(object);
      } catch (const DataError&) {
        return false;  // the check for lost arguments names the message
      }
      return false;
    });
  return decoded;
}

std::optional<size_t> message_with_lost_arguments(const ordered_json& messages,
                                                  const std::string& rendered) {
  for (size_t index = 0; index < messages.size(); ++index) {
    const bool is_lost = visit_text_arguments(messages[index], [&](const ordered_json& arguments) {
      return rendered.find(bare_text(arguments)) == std::string::npos ||
             holds_quoted(rendered, arguments);
    });
    if (is_lost) return index;
  }
  return std::nullopt;
}

}  // namespace convoy::data
