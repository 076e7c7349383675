// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "convoy/apps/front/command.h"

namespace convoy::apps {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool Context::use_color(int descriptor) const {
  if (common.color != "auto") return common.color == "always";
  if (is_set("NO_COLOR") || is_set("CONVOY_NO_COLOR")) return false;
  if (is_set("FORCE_COLOR")) return true;
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string Context::why_no_question() const {
  if (common.no_input) return "--no-input forbids questions";
  return isatty(STDIN_FILENO) == 1 ? "" : "there is no terminal to ask questions on";
}

}  // namespace convoy::apps
