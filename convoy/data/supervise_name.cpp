// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/supervise_name.h"

#include "convoy/base/error.h"

namespace convoy::data {

Supervise supervise_named(const std::string& name) {
  if (name == "auto") return Supervise::Auto;
  if (name == "assistant") return Supervise::Assistant;
  if (name == "last") return Supervise::Last;
  if (name == "all") return Supervise::All;
  throw ConfigError(fmt::format("wanted auto, assistant, last or all, found `{}`", name),
                    {.key = "supervise"});
}

}  // namespace convoy::data
