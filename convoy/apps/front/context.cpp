// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/environment_variable.h"

namespace convoy::apps {
namespace {

bool is_set(const char* name) { return !environment_text(name).empty(); }

}  // namespace

bool Context::use_color(int descriptor) const {
  if (common.color != "auto") return common.color == "always";
  if (is_set("NO_COLOR") || is_set("CONVOY_NO_COLOR")) return false;
  if (is_set("FORCE_COLOR")) return true;
  return isatty(descriptor) == 1 && environment_variable("TERM").value_or("dumb") != "dumb";
}

std::string Context::why_no_question() const {
  if (common.no_input) return "--no-input forbids questions";
  return isatty(STDIN_FILENO) == 1 ? "" : "there is no terminal to ask questions on";
}

}  // namespace convoy::apps
