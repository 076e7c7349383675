// SPDX-License-Identifier: Apache-2.0
//
// SLURM's compressed lists: hosts ("node[01-03,7],gpu-[a,b]") and counts per node ("2(x3),1").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

// The hosts in order, zero padding kept; several bracket groups in one name multiply, the first
// varying slowest. `variable` names the source in messages. Throws ConfigError: a bad list, or more
// than 100,000 hosts.
std::vector<std::string> expand_host_list(std::string_view list, std::string_view variable);

// {2, 2, 2, 1} of "2(x3),1". Throws ConfigError as above.
std::vector<int> expand_counts(std::string_view counts, std::string_view variable);

}  // namespace convoy::launch
