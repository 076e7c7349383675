// SPDX-License-Identifier: Apache-2.0
//
// Compares answers as the evaluation of SQuAD 1.1 does: ignores case, ASCII punctuation, the
// articles a, an and the, and extra white space.
#pragma once

#include <string>
#include <string_view>

namespace convoy::evaluate {

std::string squad_normalised(std::string_view text);
bool squad_match(std::string_view pred, std::string_view ref);
double squad_f1(std::string_view pred, std::string_view ref);  // 0 to 1, over words

}  // namespace convoy::evaluate
