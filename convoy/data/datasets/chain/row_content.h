// SPDX-License-Identifier: Apache-2.0
//
// What a row says, as one text: what duplicates are told by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/row_source.h"
#include "convoy/data/datasets/schema.h"

namespace convoy::data {

struct ContentConfig {
  std::string column;  // empty: the texts of the whole row by its schema, in their order
  SchemaConfig schema;
  bool roles = true;      // who says what counts too
  bool normalise = true;  // one space for any white space, none at the ends, ASCII letters small
};

// Throws DataError for a row without the column, or of no schema.
std::string row_content(const Row& row, const ContentConfig& config);

// "  A \n b" becomes "a b". White space is that of Unicode 15.
std::string normalised_text(std::string_view text);

enum class ShingleUnit { Words, Characters };

// Hashes of all runs of `length` words or characters, each once, ascending. A text with fewer is
// one shingle; one without any word, none.
std::vector<uint64_t> shingles(std::string_view text, ShingleUnit unit, int64_t length);

// Of two such lists: how many both have, of all that either has. Two empty ones: 1.
double jaccard(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right);

// A 64-bit hash of bytes, the same on every machine.
uint64_t hash_of(std::string_view bytes);

}  // namespace convoy::data
