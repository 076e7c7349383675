// SPDX-License-Identifier: Apache-2.0
//
// The content of a row as one text, by which duplicates are found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/schemas/schema.h"

namespace convoy::data {

struct ContentConfig {
  std::string column;  // empty: the texts of the whole row by its schema, in their order
  SchemaConfig schema;
  bool roles = true;      // the role of a message counts too
  bool normalise = true;  // one space for any white space, none at the ends, ASCII letters small
};

// Throws DataError for a row without the column, or without a known schema.
std::string row_content(const Row& row, const ContentConfig& config);

// " A \n b" becomes "a b". White space as in Unicode 15.
std::string normalised_text(std::string_view text);

enum class ShingleUnit { Words, Characters };

// Hashes of all runs of `length` words or characters, each once, ascending. A text with fewer is
// one shingle; one without any word has none.
std::vector<uint64_t> shingles(std::string_view text, ShingleUnit unit, int64_t length);

// Jaccard index of two such lists: shared hashes divided by all hashes. Two empty lists: 1.
double jaccard(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right);

// A 64-bit hash of bytes, equal on every machine.
uint64_t hash_of(std::string_view bytes);

}  // namespace convoy::data
