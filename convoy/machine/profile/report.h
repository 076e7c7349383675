// SPDX-License-Identifier: Apache-2.0
//
// A breakdown in words and figures: a table for people, what to do about the largest loss, JSON for
// programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/machine/profile/breakdown.h"

namespace convoy::profile {

struct ProfiledRun {
  std::string name;                    // the run folder's name
  std::vector<RankTrace> traces = {};  // on one clock
  Breakdown breakdown = {};
  double units_per_second = 0;  // over the traced steps, all ranks together; 0 = not known
  std::string unit = "tokens";  // or samples
};

std::string report_text(const ProfiledRun& run);
nlohmann::ordered_json report_json(const ProfiledRun& run);  // schema convoy.profile/1

// Two runs side by side. If the first has one rank and the second several, the text also gives the
// speedup and the causes of the lost speed. Throws ConfigError when one counts tokens and the other
// samples.
std::string comparison_text(const ProfiledRun& first, const ProfiledRun& second);
// Schema convoy.profile_comparison/1.
nlohmann::ordered_json comparison_json(const ProfiledRun& first, const ProfiledRun& second);

// The largest costs and their remedies, one or two sentences each; empty when nothing stands out.
std::vector<std::string> findings(const Breakdown& breakdown);

}  // namespace convoy::profile
