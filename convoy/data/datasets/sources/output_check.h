// SPDX-License-Identifier: Apache-2.0
//
// Detects outputs that would overwrite inputs, or would be read as inputs later.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::data {

// `named`: the files, patterns and folders in the user's data set name, as in DatasetRequest::name;
// `inputs`: the files that they resolved to. Throws ConfigError when an output is an input, under
// any path. Also throws when the next run would read an output as an input: it is in an input
// folder, or matches a pattern.
void refuse_outputs_among_inputs(const std::vector<std::filesystem::path>& outputs,
                                 const std::string& named,
                                 const std::vector<std::filesystem::path>& inputs);

}  // namespace convoy::data
