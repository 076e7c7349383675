// SPDX-License-Identifier: Apache-2.0
//
// Identifies adapters, and the weights of a model without reading all of them.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/io/model_folder.h"

namespace convoy::io {

// Returns the hub commit, or a hash over configuration, file names, sizes and the first and last
// MiB of each weight file. The cost does not depend on the size of the model. Throws DataError.
std::string model_fingerprint(const ModelFolder& folder);

// The folder with the weights of a model that is named by its folder, its hub id or an adapter's
// folder: of an adapter that of its base. Throws DataError.
ModelFolder folder_of_weights(const std::string& name);

// The fingerprints of a model named so: of an adapter its base's and its own. Throws DataError.
std::string fingerprint_of_named(const std::string& name);

// Covers an adapter's configuration and every byte of its weights, whether it is a PEFT folder or a
// file. Throws DataError.
std::string adapter_fingerprint(const std::filesystem::path& adapter);

}  // namespace convoy::io
