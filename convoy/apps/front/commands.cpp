// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/command.h"

namespace convoy::apps {

// The one registry of commands.
const std::vector<Command>& commands() {
  static const std::vector<Command> list = {
      config_command(),
      runs_command(),
      help_command(),
  };
  return list;
}

}  // namespace convoy::apps
