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
  std::string column;  // empty: all texts of the row, in the order of its schema
  SchemaConfig schema;
  bool roles = true;      // true: the role of a message is a part of the content
  bool normalise = true;  // true: normalised_text(), and ASCII letters in lower case
};

// The content of a row as one text. Throws DataError for a row without the column, or without a
// known schema.
std::string row_content(const Row& row, const ContentConfig& config);

// Replaces each run of white space by one space, and drops it at the ends: " A \n b" becomes "a b".
// White space as in Unicode 15.
std::string normalised_text(std::string_view text);

enum class ShingleUnit { Words, Characters };

// Hashes of all runs of `length` words or characters, without duplicates, ascending. A text with
// fewer words or characters is one shingle; a text without any word has no shingle.
std::vector<uint64_t> shingles(std::string_view text, ShingleUnit unit, int64_t length);

// Jaccard index of two lists of hashes: shared hashes divided by all hashes. Two empty lists have
// the index 1.
double jaccard(const std::vector<uint64_t>& left, const std::vector<uint64_t>& right);

// A 64-bit hash of bytes, equal on every machine.
uint64_t hash_of(std::string_view bytes);

}  // namespace convoy::data
