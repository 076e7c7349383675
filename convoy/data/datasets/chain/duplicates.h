// SPDX-License-Identifier: Apache-2.0
//
// Which rows say what an earlier row says already: exactly, or nearly (MinHash with
// locality-sensitive hashing, Broder 1997; Leskovec, Rajaraman, Ullman, chapter 3). The first row
// of a cluster is the one that is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "convoy/data/datasets/chain/row_content.h"
#include "convoy/data/datasets/chain/row_pass.h"

namespace convoy::data {

struct NearConfig {
  double threshold = 0.8;  // of the Jaccard index over shingles
  ShingleUnit unit = ShingleUnit::Words;
  int64_t shingle = 5;  // units
  uint64_t seed = 42;   // of the permutations
};

// How a signature of 128 minima is cut into bands: as long as they may be for pairs at the
// threshold to share one in 999 of 1000 cases.
struct LshBands {
  int64_t bands = 0;
  int64_t rows = 0;  // minima in each
};
LshBands lsh_bands(double threshold);

struct Duplicate {
  int64_t row = 0;
  int64_t kept = 0;  // the first row of its cluster
};

struct DuplicateReport {
  PassReport pass;
  std::vector<Duplicate> duplicates;  // by row
  int64_t clusters = 0;               // of two rows or more
};

// Memory: 16 bytes for each duplicate beside a fixed 64 MiB; the rest is sorted in `scratch`, 32
// bytes a row. Throws DataError, IoError.
DuplicateReport find_exact_duplicates(const RowPass& pass, const ContentConfig& content,
                                      const std::filesystem::path& scratch);

// Pairs that share a band are compared by their shingles, so that the threshold is met exactly. A
// cluster holds the rows that are linked by such pairs. Memory: 20 bytes a row beside a fixed 64
// MiB; `scratch` takes the shingles, 8 bytes each, and 16 bytes a row and band. Rows without a
// shingle are never duplicates.
DuplicateReport find_near_duplicates(const RowPass& pass, const ContentConfig& content,
                                     const NearConfig& near, const std::filesystem::path& scratch);

}  // namespace convoy::data
