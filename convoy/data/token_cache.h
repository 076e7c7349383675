// SPDX-License-Identifier: Apache-2.0
//
// Encoded splits on disk, one file per key. A key names everything the tokens depend on, so a hit is always right; a
// damaged file is a miss.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "convoy/base/log.h"
#include "convoy/data/encode_splits.h"
#include "convoy/data/token_dataset.h"

namespace convoy::data {

struct CachedSplit {
  TokenDataset dataset;
  SplitReport report;
  std::string policy;
};

// Safe to use from several processes at once: files appear whole, and the last writer of a key wins.
class TokenCache {
 public:
  // `setting` as in data.cache_dir: empty = $XDG_CACHE_HOME or ~/.cache, convoy/tokens in it; "none" = off.
  TokenCache(const std::string& setting, const Log& log);

  // Maps the file of `key` (a SHA-256) and checks it whole. Nothing when absent; a warning and nothing when damaged.
  std::optional<CachedSplit> load(const std::string& key) const;
  // A cache that cannot be written costs a warning, not the run.
  void store(const std::string& key, const CachedSplit& split) const;

  std::filesystem::path path_of(const std::string& key) const;

 private:
  static std::shared_ptr<const TokenDataset::Buffer> map(const std::filesystem::path& path,
                                                         const std::string& key,
                                                         CachedSplit& split);

  std::optional<std::filesystem::path> folder_;
  const Log& log_;
};

}  // namespace convoy::data
