// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/matrix.h"

#include <algorithm>

namespace convoy::answers {
namespace {

constexpr size_t kMostEntries = 256;

std::optional<Node> sum_of(const Node& a, const Node& b) {
  if (a.columns != b.columns || a.children.size() != b.children.size()) return std::nullopt;
  Node sum = a;
  for (size_t index = 0; index < a.children.size(); ++index)
    sum.children[index] = make_node(Kind::Sum, {a.children[index], b.children[index]});
  return sum;
}

// The product of two matrices. Entries of repeated products grow without limit, so their size is
// taken from the step budget.
std::optional<Node> product_of(const Node& a, const Node& b, Steps& steps) {
  const size_t rows = a.children.size() / a.columns;
  if (b.children.size() / b.columns != a.columns || rows * b.columns > kMostEntries)
    return std::nullopt;
  if (!steps.take((nodes_in(a) + nodes_in(b)) * static_cast<int64_t>(std::max(rows, b.columns))))
    return std::nullopt;
  Node product = make_node(Kind::Matrix, {});
  product.columns = b.columns;
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < b.columns; ++column) {
      Node entry = make_node(Kind::Sum, {});
      for (size_t inner = 0; inner < a.columns; ++inner)
        entry.children.push_back(make_node(
            Kind::Product,
            {a.children[row * a.columns + inner], b.children[inner * b.columns + column]}));
      product.children.push_back(std::move(entry));
    }
  return product;
}

Node scaled(Node matrix, const Node& factor, Kind kind) {
  for (Node& entry : matrix.children) entry = make_node(kind, {std::move(entry), factor});
  return matrix;
}

std::optional<Node> product_value(const Node& node, Steps& steps) {
  std::optional<Node> matrix;
  std::vector<const Node*> factors;
  for (const Node& child : node.children) {
    if (!holds_matrix(child)) {
      factors.push_back(&child);
      continue;
    }
    std::optional<Node> value = matrix_value(child, steps);
    if (value && matrix) value = product_of(*matrix, *value, steps);
    if (!value) return std::nullopt;
    matrix = std::move(value);
  }
  for (const Node* factor : factors)
    if (matrix) matrix = scaled(std::move(*matrix), *factor, Kind::Product);
  return matrix;
}

}  // namespace

bool holds_matrix(const Node& node) {
  if (node.kind == Kind::Matrix) return true;
  if (is_collection(node)) return false;
  return std::any_of(node.children.begin(), node.children.end(), holds_matrix);
}

std::optional<Node> matrix_value(const Node& node, Steps& steps) {
  switch (node.kind) {
    case Kind::Matrix:
      return node;
    case Kind::Negation: {
      std::optional<Node> matrix = matrix_value(node.children[0], steps);
      if (!matrix) return std::nullopt;
      return scaled(std::move(*matrix), make_leaf(Kind::Number, "-1"), Kind::Product);
    }
    case Kind::Quotient: {
      std::optional<Node> matrix = matrix_value(node.children[0], steps);
      if (!matrix || holds_matrix(node.children[1])) return std::nullopt;
      return scaled(std::move(*matrix), node.children[1], Kind::Quotient);
    }
    case Kind::Sum: {
      std::optional<Node> sum;
      for (const Node& child : node.children) {
        std::optional<Node> matrix = matrix_value(child, steps);
        if (!matrix) return std::nullopt;
        sum = sum ? sum_of(*sum, *matrix) : std::move(matrix);
        if (!sum) return std::nullopt;
      }
      return sum;
    }
    case Kind::Product:
      return product_value(node, steps);
    default:
      return std::nullopt;
  }
}

std::optional<Node> determinant(const Node& matrix) {
  constexpr size_t kMostRows = 4;
  const size_t size = matrix.columns;
  if (matrix.kind != Kind::Matrix || size == 0 || size > kMostRows ||
      matrix.children.size() != size * size)
    return std::nullopt;
  if (size == 1) return matrix.children[0];
  Node sum = make_node(Kind::Sum, {});
  for (size_t column = 0; column < size; ++column) {
    Node minor = make_node(Kind::Matrix, {});
    minor.columns = size - 1;
    for (size_t index = size; index < matrix.children.size(); ++index)
      if (index % size != column) minor.children.push_back(matrix.children[index]);
    Node term = make_node(Kind::Product, {matrix.children[column], *determinant(minor)});
    if (column % 2 == 1) term = make_node(Kind::Negation, {std::move(term)});
    sum.children.push_back(std::move(term));
  }
  return sum;
}

}  // namespace convoy::answers
