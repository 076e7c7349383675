// SPDX-License-Identifier: Apache-2.0
//
// The Porter stemmer of NLTK in its NLTK_EXTENSIONS mode, which rouge_score stems with.
#pragma once

#include <string>

namespace convoy::evaluate {

// The stem of a word of lower-case ASCII letters and digits: "flying" -> "fli", "dies" -> "die".
std::string porter_stem(std::string word);

}  // namespace convoy::evaluate
