// SPDX-License-Identifier: Apache-2.0
//
// Sums, products and multiples of matrices, computed entry by entry.
#pragma once

#include <optional>

#include "convoy/data/answers/node.h"
#include "convoy/data/answers/steps.h"

namespace convoy::answers {

bool holds_matrix(const Node& node);

// The matrix that an expression of matrices equals; empty when the node is no such expression, or
// shapes do not match.
std::optional<Node> matrix_value(const Node& node, Steps& steps);

// The determinant as an expression; empty when the matrix is not square or has more than four rows.
std::optional<Node> determinant(const Node& matrix);

}  // namespace convoy::answers
