// SPDX-License-Identifier: Apache-2.0
//
// Sums, products and multiples of matrices, carried out entry by entry.
#pragma once

#include <optional>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

bool holds_matrix(const Node& node);

// Nothing where the node is no matrix, or shapes do not fit.
std::optional<Node> matrix_value(const Node& node, Steps& steps);

// As an expression; nothing where it is not square or has more than four rows.
std::optional<Node> determinant(const Node& matrix);

}  // namespace convoy::answers
