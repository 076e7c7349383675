// SPDX-License-Identifier: Apache-2.0
//
// The choices of values that the flags of `convoy sweep run` describe: every row of one block
// combined with every row of the other blocks. A block is one --grid, all --zip together, the rows
// of --cells, or the samples of the --space.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convoy/farm/sweep/command/command_grid.h"

namespace convoy::sweep {

struct GridBlock {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;  // distinct rows, each as long as `names`
};

using Choice = std::map<std::string, std::string>;  // values by name

// A column `seed` of --cells counts as a name. Throws ConfigError, DataError.
std::vector<GridBlock> blocks_of(const CommandFlags& flags);

double num_choices(const std::vector<GridBlock>& blocks);
// Every combination of rows. The rows of the last block change fastest.
std::vector<Choice> choices(const std::vector<GridBlock>& blocks);

// The blocks with only these names: drops the other columns, and rows that are equal without them.
std::vector<GridBlock> only_names(const std::vector<GridBlock>& blocks,
                                  const std::vector<std::string>& names);

// A name with its values, such as "lr=0.1,0.01" in a flag.
struct NamedValues {
  std::string name;
  std::vector<std::string> values;
};
NamedValues named_values(const std::string& flag, const std::string& text);

}  // namespace convoy::sweep
