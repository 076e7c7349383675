// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/reports/wandb_variables.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>
#include <utility>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/protobuf_fields.h"
#include "convoy/core/base/utf8.h"

namespace convoy::reports {
namespace {

template <size_t Count>
bool is_among(const std::array<std::string_view, Count>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 3> kOnline = {"online", "run", "shared"};
constexpr std::array<std::string_view, 3> kOffline = {"", "offline", "dryrun"};

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

}  // namespace

std::string wandb_variable(const std::string& name) {
  std::string text = environment_text(name);
  if (find_invalid_utf8(text))
    throw ConfigError(fmt::format("{} is not UTF-8", name),
                      {.key = name, .hint = "set it in UTF-8, or unset it"});
  return text;
}

std::string wandb_is_off() {
  const std::string mode = environment_text("WANDB_MODE");
  if (mode == "disabled") return "WANDB_MODE is disabled";
  if (!is_among(kOnline, mode) && !is_among(kOffline, mode))
    throw ConfigError(
        fmt::format("WANDB_MODE: wanted offline, online, shared or disabled, found `{}`", mode),
        {.key = "WANDB_MODE", .hint = "unset it: a run is offline here"});
  // transformers before 5 reads it so.
  const std::string disabled = environment_text("WANDB_DISABLED");
  if (is_among(std::array<std::string_view, 4>{"1", "ON", "YES", "TRUE"}, upper(disabled)))
    return fmt::format("WANDB_DISABLED is {}", disabled);
  return {};
}

std::string wandb_online_mode() {
  const std::string mode = environment_text("WANDB_MODE");
  return is_among(kOnline, mode) ? mode : "";
}

std::string wandb_run_members() {
  std::string members;
  for (const auto& [name, field] : {std::pair<const char*, uint64_t>{"WANDB_ENTITY", 2},
                                    {"WANDB_RUN_GROUP", 6},
                                    {"WANDB_JOB_TYPE", 7},
                                    {"WANDB_NOTES", 9}})
    if (const std::string text = wandb_variable(name); !text.empty())
      put_bytes(members, field, text);
  std::istringstream tags(wandb_variable("WANDB_TAGS"));
  for (std::string tag; std::getline(tags, tag, ',');)
    if (!tag.empty()) put_bytes(members, 10, tag);
  return members;
}

}  // namespace convoy::reports
