// SPDX-License-Identifier: Apache-2.0
//
// `convoy models quantize` inside the worker.
#include "convoy/apps/recipes/model_files/quantize_weights.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {

int quantize_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::QuantizeFlags flags;
  const Arguments positionals =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (!positionals.empty())
    throw ConfigError(fmt::format("unexpected argument `{}`", positionals[0]),
                      {.hint = "every value has a flag"});
  recipes::quantize_weights(flags, worker.log());
  return 0;
}

}  // namespace convoy::apps
