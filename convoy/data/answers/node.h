// SPDX-License-Identifier: Apache-2.0
//
// An answer as a tree: expressions, and structures of expressions such as relations, lists and
// sets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "convoy/data/answers/letters.h"
#include "convoy/data/answers/measure_unit.h"

namespace convoy::answers {

enum class Kind {
  Number,      // name: the digits as the tokenizer leaves them
  BaseNumber,  // name: the digits; one child: the base
  Symbol,      // name
  Constant,    // name: "pi", "e", "i", "infinity"
  Sum,         // children
  Product,     // children
  Quotient,    // children: above, below
  Power,       // children: base, exponent
  Negation,    // one child
  PlusMinus,   // children: a, b of a +- b, or only b of +- b; name: "pm", "mp"
  Percent,     // one child
  Call,        // name; children: the arguments
  Series,      // name: the index; children: first, last, term; open: '+' or '*'
  Quantity,    // one child; unit
  Matrix,      // children: the entries row by row; `columns`: their number per row
  Ratio,       // children: the terms of a:b:c
  Relation,    // children joined by `relations`: a < b < c; open: 'm' for the sign of congruence
  // Children: the modulus, the congruent value (a symbol with an empty name when there is none),
  // and the residues.
  Congruence,
  // Children without brackets or order; open: 'o' = joined by "or", 'a' = by "and", kPiece = the
  // pieces of a piecewise value.
  List,
  Set,  // children
  // Children; two may also be the ends of an interval, with brackets `open` and `close`; open:
  // kPiece for a value with its conditions.
  Tuple,
  NamedSet,      // name: "R", "Z", "N", "Q", "C", or "" for the empty set
  Union,         // children
  Intersection,  // children
  Difference,    // children: a set, and the sets removed from it
  Builder,       // one child: the relation that defines the elements
};

constexpr char kPiece = 'p';

enum class Comparison { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, About, In, NotIn };

struct Node {
  Kind kind = Kind::Number;
  std::string name = {};
  std::vector<Node> children = {};
  std::vector<Comparison> relations = {};
  MeasureUnit unit = {};
  char open = '(';
  char close = ')';
  size_t columns = 0;
};

inline bool is_integer(const Node& node) {
  return node.kind == Kind::Number && std::all_of(node.name.begin(), node.name.end(), is_digit);
}

inline Node make_node(Kind kind, std::vector<Node> children) {
  Node node;
  node.kind = kind;
  node.children = std::move(children);
  return node;
}
inline Node make_leaf(Kind kind, std::string name) {
  Node node;
  node.kind = kind;
  node.name = std::move(name);
  return node;
}

inline bool is_collection(const Node& node) {
  switch (node.kind) {
    case Kind::List:
    case Kind::Set:
    case Kind::Tuple:
    case Kind::NamedSet:
    case Kind::Union:
    case Kind::Intersection:
    case Kind::Difference:
    case Kind::Builder:
      return true;
    default:
      return false;
  }
}

// Number of nodes of the tree, which is the cost of a copy.
int64_t nodes_in(const Node& node);

// True for a name or an expression of names, such as f, f(2), (x, y), AB, |AB|, S:T and a/b.
// Numbers may occur only as arguments of a named function.
bool only_names(const Node& node);

}  // namespace convoy::answers
