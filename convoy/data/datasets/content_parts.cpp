// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/content_parts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

// A private-use letter: a template treats it as ordinary text.
constexpr const char* kProbe = "\xEE\x80\x9A";

bool has_parts(const ordered_json& message) {
  return message.is_object() && message.contains("content") && message["content"].is_array();
}

std::string joined_texts(const ordered_json& parts) {
  std::string text;
  for (const ordered_json& part : parts)
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  return text;
}

bool are_texts(const ordered_json& parts) {
  return std::all_of(parts.begin(), parts.end(), [](const ordered_json& part) {
    return part.is_object() && part.contains("text") && part["text"].is_string();
  });
}

std::optional<std::string> render(const text::ChatTemplate& chat_template,
                                  const ordered_json& messages, const ordered_json& variables) {
  try {
    return chat_template.render(messages, variables, false).text;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Tested on message `index` of a conversation whose other contents are strings.
bool reads_parts(const text::ChatTemplate& chat_template, ordered_json messages,
                 const ordered_json& variables, size_t index) {
  messages[index]["content"] = ordered_json::array({{{"type", "text"}, {"text", kProbe}}});
  const std::optional<std::string> of_part = render(chat_template, messages, variables);
  if (!of_part) return false;
  messages[index]["content"] = kProbe;
  const std::optional<std::string> of_text = render(chat_template, messages, variables);
  return !of_text || *of_text == *of_part;
}

}  // namespace

bool has_content_parts(const ordered_json& messages) {
  return std::any_of(messages.begin(), messages.end(), has_parts);
}

ordered_json with_readable_contents(const text::ChatTemplate& chat_template,
                                    const ordered_json& messages, const ordered_json& variables) {
  ordered_json joined = messages;
  for (ordered_json& message : joined)
    if (has_parts(message) && are_texts(message["content"]))
      message["content"] = joined_texts(message["content"]);
  ordered_json readable = joined;
  std::vector<std::pair<ordered_json, bool>> roles;  // by their first message with parts
  for (size_t index = 0; index < messages.size(); ++index) {
    if (!has_parts(messages[index]) || has_parts(joined[index])) continue;
    const ordered_json role = messages[index].value("role", ordered_json());
    auto known = std::find_if(roles.begin(), roles.end(),
                              [&](const auto& entry) { return entry.first == role; });
    if (known == roles.end())
      known =
          roles.insert(roles.end(), {role, reads_parts(chat_template, joined, variables, index)});
    if (known->second) readable[index]["content"] = messages[index]["content"];
  }
  return readable;
}

}  // namespace convoy::data
