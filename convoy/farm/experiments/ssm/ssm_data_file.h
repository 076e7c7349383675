// SPDX-License-Identifier: Apache-2.0
//
// The teachers and sequences of `convoy sweep ssm --data-file`: a JSON list. Seed s takes entry s
// mod count.
#pragma once

#include <string>
#include <vector>

namespace convoy::experiments {

struct SsmDataEntry {
  double alpha = 0;                    // used if the teacher has rank 1
  std::vector<std::vector<double>> w;  // one vector per sequence
};

// Returns at least one entry. `file` names the text in messages. Throws DataError, which names the
// line and column of invalid JSON, the kind of a JSON text that is no list of entries, or the wrong
// entry.
std::vector<SsmDataEntry> read_ssm_data(const std::string& text, const std::string& file);

}  // namespace convoy::experiments
