// SPDX-License-Identifier: Apache-2.0
//
// The teachers and sequences of `convoy sweep ssm --data-file`: a JSON list, of which seed s takes
// entry s mod count.
#pragma once

#include <string>
#include <vector>

namespace convoy::experiments {

struct SsmDataEntry {
  double alpha = 0;                    // if the teacher has rank 1
  std::vector<std::vector<double>> w;  // per sequence
};

// `file` names the text in messages. One entry at least. Throws DataError: line and column of what
// is no JSON, what the text is when it is another kind of JSON, or the entry at fault.
std::vector<SsmDataEntry> read_ssm_data(const std::string& text, const std::string& file);

}  // namespace convoy::experiments
