// SPDX-License-Identifier: Apache-2.0
//
// The file in which a reference's scores of rows are kept beside the token cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"

namespace convoy::recipes {

// A safetensors file with scores by row of a data set; NaN for a row without a score.
class ScoreFile {
 public:
  // With an empty `folder` no file is kept. `key` identifies everything that the scores depend on.
  ScoreFile(const std::filesystem::path& folder, const std::string& key, const Log& log);

  // Returns NaN for all rows when there is no file or a damaged file. Warns of damage.
  std::vector<double> read(int64_t num_rows) const;
  // Warns when the folder cannot be written.
  void write(const std::vector<double>& scores) const;

  // Returns a function that returns `scores` any number of times: from the file, which stays
  // readable if its name is removed, or from memory when the file does not hold these scores.
  using Reader = std::function<std::vector<double>()>;
  Reader reader(std::vector<double> scores) const;

 private:
  std::filesystem::path path_;  // empty: no file
  const Log& log_;
};

}  // namespace convoy::recipes
