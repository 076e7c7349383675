// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/served_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"

namespace convoy::serving {

std::vector<NamedAdapter> named_adapters(const settings::ServeFlags& flags) {
  std::vector<NamedAdapter> adapters;
  for (const std::string& given : flags.adapters.names) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == given.size())
      throw ConfigError(fmt::format("--adapter needs NAME=DIR, found `{}`", given),
                        {.key = "--adapter", .hint = "such as --adapter sums=runs/sums/adapter"});
    adapters.push_back({given.substr(0, equals), given.substr(equals + 1)});
  }
  return adapters;
}

std::vector<std::string> served_names(const settings::ServedModelFlags& model,
                                      const settings::ServeFlags& flags) {
  std::vector<std::string> names = {flags.served_name.empty() ? model.model.model
                                                              : flags.served_name};
  for (const NamedAdapter& adapter : named_adapters(flags)) {
    if (std::find(names.begin(), names.end(), adapter.name) != names.end())
      throw ConfigError(fmt::format("two models would be named `{}`", adapter.name),
                        {.key = "--adapter", .hint = "give each adapter a name of its own"});
    names.push_back(adapter.name);
  }
  return names;
}

}  // namespace convoy::serving
