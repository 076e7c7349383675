// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/answers/node.h"

#include <algorithm>

namespace convoy::answers {

bool only_names(const Node& node) {
  switch (node.kind) {
    case Kind::Symbol:
      return true;
    case Kind::Constant:
      return node.name == "e" || node.name == "i";
    case Kind::Product:
      return only_names(node.children[0]) &&
             std::all_of(node.children.begin() + 1, node.children.end(), [](const Node& child) {
               return only_names(child) || child.kind == Kind::Number ||
                      child.kind == Kind::Relation;
             });
    case Kind::Quotient:
    case Kind::Ratio:
    case Kind::Tuple:
    case Kind::List:
      return std::all_of(node.children.begin(), node.children.end(), only_names);
    case Kind::Call:
      return node.name == "abs" && only_names(node.children[0]);
    case Kind::Power:  // such as f^{-1} or f'
      return node.children[0].kind == Kind::Symbol && node.children[1].kind == Kind::Negation;
    default:
      return false;
  }
}

int64_t nodes_in(const Node& node) {
  int64_t count = 1;
  for (const Node& child : node.children) count += nodes_in(child);
  return count;
}

}  // namespace convoy::answers
