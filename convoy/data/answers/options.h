// SPDX-License-Identifier: Apache-2.0
//
// Options of multiple-choice questions within prose: "So it is (B), because 3 is prime".
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The length of an option's label at the start of `text`: "(B)", "B)", "B.", "B:", "option B"; 0
// when there is none.
size_t option_length(std::string_view text);

// `answer` up to the words that introduce a reason: "because", "since", "因为", "так как".
std::string_view without_reason(std::string_view answer);

// Returns "B" for "B, which cannot be A". Any answer that is not one option with a remark is
// returned whole.
std::string_view without_remark(std::string_view answer);

// The last option that the text names as its choice, in the form "(B)"; empty when there is none.
// `at_end`: search only the last sentence, for a question that is not known to have options.
std::string option_told(std::string_view text, bool at_end);

// True when the text denies the option at its last mention: "It cannot be (B)", "B is wrong",
// "不选B".
bool rejects_option(std::string_view text, char letter);

}  // namespace convoy::answers
