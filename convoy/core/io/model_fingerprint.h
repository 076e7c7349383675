// SPDX-License-Identifier: Apache-2.0
//
// Which weights a model folder holds, told without reading them all.
#pragma once

#include <string>

#include "convoy/core/io/model_folder.h"

namespace convoy::io {

// The hub commit, or a hash over configuration, file names, sizes and the first and last MiB of
// each weight file, so that a start costs the same for any model size. Throws DataError.
std::string model_fingerprint(const ModelFolder& folder);

}  // namespace convoy::io
