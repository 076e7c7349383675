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

// Returns the words that complete the last of `words`. `words` are the words after `convoy`; the
// last one is being typed and may be empty. Returns none for a file name, or for a value without a
// list of choices.
std::vector<Candidate> candidates(const Words& words);

// One line per candidate: the word, a tab and the help text.
std::string candidate_lines(const std::vector<Candidate>& found);

}  // namespace convoy::apps
