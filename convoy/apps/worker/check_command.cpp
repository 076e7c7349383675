// SPDX-License-Identifier: Apache-2.0
//
// `convoy models check` and the ranks of `convoy doctor` inside the worker.
#include <fmt/format.h>

#include <iostream>

#include "convoy/apps/recipes/model_files/model_check.h"
#include "convoy/apps/recipes/ranks_check.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {

int check_model_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelCheckFlags flags;
  const Arguments words =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (words.size() != 1)
    throw ConfigError(fmt::format("wanted one model, found {}", words.size()),
                      {.hint = "convoy models check FOLDER, or a hub id of the local cache"});
  const recipes::ModelCheck check = recipes::check_model(words[0], flags);
  if (worker.json)
    std::cout << check.facts.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    std::cout << recipes::model_check_text(check);
  return static_cast<int>(check.refusals.empty() ? ExitCode::Done : ExitCode::BadInput);
}

int check_ranks_command(const Arguments& arguments) {
  CommonFlags worker;
  recipes::RanksCheckFlags flags;
  config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  recipes::check_ranks(flags);
  return 0;
}

}  // namespace convoy::apps
