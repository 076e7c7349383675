// SPDX-License-Identifier: Apache-2.0
//
// Checks rules that every figure of a sweep must follow.
#pragma once

#include "figures/figure_drawing.h"

namespace convoy::testing {

void expect_inside_the_page(const Drawing& drawing);
void expect_no_text_over_another(const Drawing& drawing);
// Expects all data within the axes, and the legend and the caption outside of them.
void expect_data_and_words_apart(const Drawing& drawing);
// Expects the above, no truncated word, and room around the axes.
void expect_sound(const Drawing& drawing);

}  // namespace convoy::testing
