// SPDX-License-Identifier: Apache-2.0
//
// SLURM's compressed lists: hosts ("node[01-03,7],gpu-[a,b]") and counts per node ("2(x3),1").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

// Expands the hosts in order and keeps zero padding. Several bracket groups in one name give every
// combination, the first group varying slowest. `variable` names the source in messages. Throws
// ConfigError for a bad list or more than 100,000 hosts.
std::vector<std::string> expand_host_list(std::string_view list, std::string_view variable);

// Expands SLURM's counts: "2(x3),1" gives {2, 2, 2, 1}. Throws ConfigError as above.
std::vector<int> expand_counts(std::string_view counts, std::string_view variable);

}  // namespace convoy::launch
