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

// Calls `work`, then runs `command` in a shell with the result of `work` in its environment, also
// when `work` throws. Does not run it when nothing was computed or `command` is empty. A failing
// command causes a warning. Returns the exit code of the sweep. Throws what `work` throws.
int run_to_end(const Context& context, const std::string& name, const std::string& command,
               const std::function<SweepEnd()>& work);

}  // namespace convoy::apps
