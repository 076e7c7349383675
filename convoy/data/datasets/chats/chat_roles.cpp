// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chats/chat_roles.h"

#include <fmt/format.h>

#include <set>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr const char* kDeveloper = "developer";

bool names(const text::ChatTemplate& chat_template, const std::string& role) {
  return chat_template.mentions("'" + role + "'") || chat_template.mentions("\"" + role + "\"");
}

std::set<std::string> roles_of(const ordered_json& messages) {
  std::set<std::string> roles;
  if (messages.is_array())
    for (const ordered_json& message : messages) roles.insert(role_of(message));
  roles.erase("");
  return roles;
}

}  // namespace

std::string role_of(const ordered_json& message) {
  if (!message.is_object()) return "";
  const auto role = message.find("role");
  return role != message.end() && role->is_string() ? role->get<std::string>() : "";
}

ordered_json with_role(const ordered_json& messages, const std::string& from,
                       const std::string& to) {
  ordered_json changed = messages;
  for (ordered_json& message : changed)
    if (role_of(message) == from) message["role"] = to;
  return changed;
}

std::vector<std::string> unnamed_roles(const text::ChatTemplate& chat_template,
                                       const ordered_json& messages) {
  std::vector<std::string> unnamed;
  for (const std::string& role : roles_of(messages))
    if (role != "user" && role != "assistant" && !names(chat_template, role))
      unnamed.push_back(role);
  return unnamed;
}

std::optional<ordered_json> with_system_for_developer(const text::ChatTemplate& chat_template,
                                                      const ordered_json& messages) {
  if (!roles_of(messages).contains(kDeveloper) || names(chat_template, kDeveloper)) return {};
  return with_role(messages, kDeveloper, "system");
}

void require_known_roles(const text::ChatTemplate& chat_template, const ordered_json& messages,
                         const ordered_json& variables, bool add_generation_prompt,
                         const std::string& rendered) {
  for (const std::string& role : unnamed_roles(chat_template, messages)) {
    // The role counts as written if another role in its place changes the output, or is refused. A
    // template may refuse the other role because it knows this one by other means, such as a list
    // of roles.
    try {
      const ordered_json other = with_role(messages, role, role + "_of_nobody");
      if (chat_template.render(other, variables, add_generation_prompt).text != rendered) continue;
    } catch (const DataError&) {
      continue;
    }
    throw DataError(
        fmt::format("the chat template has no role `{}`: it would write its messages as another "
                    "role's",
                    role),
        {.key = "role",
         .hint = "use a role of the template, or another template "
                 "(data.template_path, --template-path)"});
  }
}

}  // namespace convoy::data
