// SPDX-License-Identifier: Apache-2.0
//
// The public exit codes in few words; docs/reference/exit-codes.md has more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/error_types.h"

namespace convoy::apps {

struct ExitMeaning {
  ExitCode code;
  std::string_view text;
};

const std::vector<ExitMeaning>& exit_meanings();

// "Exit codes: 0 done, 2 ... .", in lines of at most 80 columns.
std::string exit_code_sentence();
// A line for each code.
std::string exit_code_lines();

}  // namespace convoy::apps
