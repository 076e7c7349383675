// SPDX-License-Identifier: Apache-2.0
//
// Knows the op that each thread runs, for reports.
#pragma once

#include <string>

namespace convoy::simulated {

struct OpName {
  const char* op = "";     // the innermost op
  const char* outer = "";  // the outermost op, or node of backward, around it

  std::string text() const;
};

// Starts to record the ops of all threads. Call it once per process.
void follow_ops();

// Returns the present op of this thread. The names are never freed.
OpName current_op();

}  // namespace convoy::simulated
