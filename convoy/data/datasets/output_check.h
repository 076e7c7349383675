// SPDX-License-Identifier: Apache-2.0
//
// Whether files that are to be written would destroy, or become, what is read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::data {

// `named`: the files, patterns and folders that the data set was named by, as in
// DatasetRequest::name; `inputs`: what they came to. Throws ConfigError where an output is an
// input, by whatever path, or would be read as one the next time: it lies in a folder that is read,
// or fits a pattern.
void refuse_outputs_among_inputs(const std::vector<std::filesystem::path>& outputs,
                                 const std::string& named,
                                 const std::vector<std::filesystem::path>& inputs);

}  // namespace convoy::data
