// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/chat_model.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "convoy/core/base/json_member.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json section_of(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_object() ? *found : json::object();
}

bool has_file(const fs::path& file) {
  std::error_code unreadable;
  return fs::is_regular_file(file, unreadable);
}

void add_value(std::vector<std::string>& flags, const char* flag, const std::string& value) {
  if (!value.empty()) flags.push_back(std::string(flag) + "=" + value);
}

}  // namespace

std::optional<ChatModel> chat_model(const fs::path& folder, const json& record) {
  const json config = section_of(record, "config");
  const json model = section_of(config, "model"), data = section_of(config, "data");
  const std::string base = member_or(model, "name", std::string());
  ChatModel chat;
  if (has_file(folder / "adapter/adapter_config.json") && !base.empty()) {
    chat.names = {kBaseName, kTrainedName};
    add_value(chat.flags, "--model", base);
    add_value(chat.flags, "--revision", member_or(model, "revision", std::string()));
    add_value(chat.flags, "--adapter",
              std::string(kTrainedName) + "=" + (folder / "adapter").string());
  } else if (has_file(folder / "model/config.json")) {
    chat.names = {kTrainedName};
    add_value(chat.flags, "--model", (folder / "model").string());
  } else {
    return std::nullopt;
  }
  add_value(chat.flags, "--served-name", chat.names.front());
  add_value(chat.flags, "--template-path", member_or(data, "template_path", std::string()));
  if (const json variables = section_of(data, "template_kwargs"); !variables.empty())
    add_value(chat.flags, "--template-kwargs", variables.dump());
  return chat;
}

}  // namespace convoy::page
