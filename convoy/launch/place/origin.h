// SPDX-License-Identifier: Apache-2.0
//
// The source of a value of the launch, and the values that it overrode: the rows of `convoy launch
// --explain`.
#pragma once

#include <string>
#include <vector>

namespace convoy::launch {

struct Origin {
  std::string field = {};  // as the flag is spelt without dashes: rank, world_size, master_addr ...
  std::string value = {};  // as text; empty = unknown
  std::string decided_by = {};  // "SLURM_PROCID", "--nnodes", "default", "derived from A and B"
  std::string overrode = {};    // "RANK=3, --master-port 29500"; empty = nothing
};

// Merges two lists of rows. A field that both have gets the value of `stronger` (flags, PET_*), and
// the value of `weaker` (the environment) is named as overridden when it differs. The rows of
// `weaker` come first, then the fields that only `stronger` has.
std::vector<Origin> merge_origins(const std::vector<Origin>& weaker,
                                  const std::vector<Origin>& stronger);

// A table for people: value, what decided it, what it overrode. Ends with a line break.
std::string origin_table(const std::vector<Origin>& origins);

// [{"field","value","decided_by","overrode"}, ...] on one line.
std::string origin_json(const std::vector<Origin>& origins);

}  // namespace convoy::launch
