// SPDX-License-Identifier: Apache-2.0
//
// Identifies the weights of a model folder without reading all of them.
#pragma once

#include <string>

#include "convoy/core/io/model_folder.h"

namespace convoy::io {

// Returns the hub commit, or a hash over configuration, file names, sizes and the first and last
// MiB of each weight file. The cost does not depend on the size of the model. Throws DataError.
std::string model_fingerprint(const ModelFolder& folder);

}  // namespace convoy::io
