// SPDX-License-Identifier: Apache-2.0
//
// The end of a sweep, and the command that a person wants to run then (`--on-end`).
#pragma once

#include <functional>
#include <string>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

struct SweepEnd {
  int code = 0;
  std::string text = {};  // a sentence
  bool ran = false;       // something was computed
};

// Calls `work` and runs `command` by the shell with the end in its environment, also when `work`
// throws; not when nothing was computed. A command that fails is a warning. Empty: none. Returns
// the exit code of the sweep. Throws what `work` throws.
int run_to_end(const Context& context, const std::string& name, const std::string& command,
               const std::function<SweepEnd()>& work);

}  // namespace convoy::apps
