// SPDX-License-Identifier: Apache-2.0
//
// The op that each thread runs, for reports.
#pragma once

#include <string>

namespace convoy::simulated {

struct OpName {
  const char* op = "";     // the innermost
  const char* outer = "";  // the outermost op or node of backward around it

  std::string text() const;
};

// Starts to follow the ops of all threads. Called once per process.
void follow_ops();

// Names live as long as the process.
OpName current_op();

}  // namespace convoy::simulated
