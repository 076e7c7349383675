// SPDX-License-Identifier: Apache-2.0
//
// Encoded splits on disk, one file per key. A key covers everything the tokens depend on, so a hit
// is always valid; a damaged file is a miss.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/data/datasets/encoding/encode_splits.h"
#include "convoy/data/datasets/encoding/encoded_spool.h"
#include "convoy/data/datasets/scratch_file.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/data/datasets/tokens/token_file.h"

namespace convoy::data {

struct CachedSplit {
  TokenDataset dataset;
  SplitReport report;
  std::string policy;
};

// The rows of one split: their shape, and a function that passes all rows in order, any number of
// times.
struct TokenFileRows {
  TokenFileShape shape;
  std::function<void(const std::function<void(const SpooledRow&)>& take)> for_each;
};

// Several processes may use a cache at once: files appear when they are complete, and the last
// writer of a key wins.
class TokenCache {
 public:
  // `setting`: the value of data.cache_dir. Empty = the folder convoy/tokens in $XDG_CACHE_HOME or
  // ~/.cache; "none" = no cache.
  TokenCache(const std::string& setting, const Log& log);

  // Maps the file of `key` (a SHA-256) and checks it completely. Empty when the file does not
  // exist, or is damaged; a damaged file also causes a warning.
  std::optional<CachedSplit> load(const std::string& key) const;
  // Writes the file of `key` row by row and loads it, so memory does not grow with the rows.
  // Without a cache folder the file is in memory. Throws IoError; the path then has no file, or
  // keeps its earlier one.
  CachedSplit store(const std::string& key, const TokenFileRows& rows, const SplitReport& report,
                    const std::string& policy) const;

  std::filesystem::path path_of(const std::string& key) const;
  std::filesystem::path folder() const { return folder_.value_or(std::filesystem::path()); }
  // A file for rows that will be stored later. Throws IoError.
  ScratchFile scratch() const;

 private:
  static CachedSplit map(const std::filesystem::path& path, const std::string& key);

  std::optional<std::filesystem::path> folder_;
  const Log& log_;
};

}  // namespace convoy::data
