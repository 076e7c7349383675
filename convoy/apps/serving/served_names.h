// SPDX-License-Identifier: Apache-2.0
//
// The model names of a server, read from its flags.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/settings/serve_flags.h"

namespace convoy::serving {

struct NamedAdapter {
  std::string name;
  std::string folder;
};

// Throws ConfigError on a flag that is not NAME=DIR.
std::vector<NamedAdapter> named_adapters(const settings::ServeFlags& flags);

// The name of the base, then the names of the adapters in their order. Throws ConfigError when two
// names are equal.
std::vector<std::string> served_names(const settings::ServedModelFlags& model,
                                      const settings::ServeFlags& flags);

}  // namespace convoy::serving
