// SPDX-License-Identifier: Apache-2.0
//
// Finds rows that repeat an earlier row: exactly, or nearly (MinHash with locality-sensitive
// hashing, Broder 1997; Leskovec, Rajaraman, Ullman, chapter 3). The first row of a cluster is
// kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "convoy/data/datasets/chain/row_content.h"
#include "convoy/data/datasets/chain/row_pass.h"

namespace convoy::data {

struct NearConfig {
  double threshold = 0.8;  // Jaccard index over shingles
  ShingleUnit unit = ShingleUnit::Words;
  int64_t shingle = 5;  // length of a shingle in units (words or characters)
  uint64_t seed = 42;   // seed of the permutations
};

// How the 128 minima of a signature are divided into bands. Bands are as long as possible while
// pairs at the threshold share a band in 999 of 1000 cases.
struct LshBands {
  int64_t bands = 0;
  int64_t rows = 0;  // number of minima in each band
};
LshBands lsh_bands(double threshold);

struct Duplicate {
  int64_t row = 0;
  int64_t kept = 0;  // index of the row that is kept: the first of the cluster
};

struct DuplicateReport {
  PassReport pass;
  std::vector<Duplicate> duplicates;  // in the order of the rows
  int64_t clusters = 0;               // number of clusters of two or more rows
};

// Memory: 16 bytes per duplicate and a fixed 64 MiB. Sorting uses 32 bytes per row on disk, in
// `scratch`. Throws DataError, IoError.
DuplicateReport find_exact_duplicates(const RowPass& pass, const ContentConfig& content,
                                      const std::filesystem::path& scratch);

// Pairs that share a band are compared by their shingles, so that the threshold holds exactly. A
// cluster holds the rows linked by such pairs. Memory: 20 bytes per row and a fixed 64 MiB;
// `scratch` holds the shingles, 8 bytes each, and 16 bytes per row and band. Rows without a shingle
// are never duplicates.
DuplicateReport find_near_duplicates(const RowPass& pass, const ContentConfig& content,
                                     const NearConfig& near, const std::filesystem::path& scratch);

}  // namespace convoy::data
