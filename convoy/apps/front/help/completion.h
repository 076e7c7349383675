// SPDX-License-Identifier: Apache-2.0
//
// The words that may come next on a command line, for the shells of completions/.
#pragma once

#include <string>
#include <vector>

#include "convoy/apps/front/command.h"

namespace convoy::apps {

struct Candidate {
  std::string word;  // "--ranks", "train", "train.steps="
  std::string help;
};

// `words`: behind `convoy`; the last one is being typed and may be empty. Empty: a name of a file,
// or a value that nobody can list.
std::vector<Candidate> candidates(const Words& words);

// One line each: the word, a tab and the help.
std::string candidate_lines(const std::vector<Candidate>& found);

}  // namespace convoy::apps
