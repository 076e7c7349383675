// SPDX-License-Identifier: Apache-2.0
//
// The choices of values that the flags of `convoy sweep run` stand for: every row of one block with
// every row of the others. A block is one --grid, all --zip together, the rows of --cells, or the
// samples of the --space.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convoy/farm/sweep/command/command_grid.h"

namespace convoy::sweep {

struct GridBlock {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // distinct; each as long as `names`
};

using Choice = std::map<std::string, std::string>;  // values by name

// A column `seed` of --cells is a name like the others. Throws ConfigError, DataError.
std::vector<GridBlock> blocks_of(const CommandFlags& flags);

double num_choices(const std::vector<GridBlock>& blocks);
// The last block turns fastest.
std::vector<Choice> choices(const std::vector<GridBlock>& blocks);

// Only these names: other columns are left out, and rows that are then equal.
std::vector<GridBlock> only_names(const std::vector<GridBlock>& blocks,
                                  const std::vector<std::string>& names);

// "lr=0.1,0.01" of `flag`.
struct NamedValues {
  std::string name;
  std::vector<std::string> values;
};
NamedValues named_values(const std::string& flag, const std::string& text);

}  // namespace convoy::sweep
