// SPDX-License-Identifier: Apache-2.0
//
// SARI of a rewritten text, as Hugging Face's evaluate computes it: compares the words that it
// keeps, deletes and adds with the references' words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::evaluate {

// SARI, from 0 to 1. Texts are lower-cased and tokenised by the rules of mteval-v13a. At least one
// reference is required.
double sari(std::string_view source, std::string_view prediction,
            const std::vector<std::string>& references);

// The words of a text by the rules of mteval-v13a; upper and lower case stay.
std::vector<std::string> words_of_13a(std::string_view text);

}  // namespace convoy::evaluate
