// SPDX-License-Identifier: Apache-2.0
//
// Options of multiple-choice questions within prose: "So it is (B), because 3 is prime".
#pragma once

#include <string>
#include <string_view>

namespace convoy::answers {

// The length of a label at the front: "(B)", "B)", "B.", "B:", "option B"; 0 when there is none.
size_t option_length(std::string_view text);

// `answer` up to the words that give its reason: "because", "since", "因为", "так как".
std::string_view without_reason(std::string_view answer);

// Returns "B" for "B, which cannot be A". Any answer that is not one option with a remark is
// returned whole.
std::string_view without_remark(std::string_view answer);

// The last option that the text names as its choice, as "(B)"; empty when there is none. `at_end`:
// only in the last sentence, where nothing is known of the question.
std::string option_told(std::string_view text, bool at_end);

// The text denies the option where it names it last: "It cannot be (B)", "B is wrong", "不选B".
bool rejects_option(std::string_view text, char letter);

}  // namespace convoy::answers
