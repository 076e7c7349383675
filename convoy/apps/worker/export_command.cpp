// SPDX-License-Identifier: Apache-2.0
//
// `convoy models export` and `convoy models convert` inside the worker.
#include "convoy/apps/recipes/model_files/export_model_file.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/error.h"

namespace convoy::apps {

int export_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelExportFlags flags;
  const Arguments models =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (models.size() + (flags.model.empty() ? 0 : 1) != 1)
    throw ConfigError("wanted one model", {.hint = "convoy models export MODEL [flags]"});
  if (!models.empty()) flags.model = models.front();
  recipes::export_model_file(flags, worker.log());
  return 0;
}

int convert_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::ModelConvertFlags flags;
  const Arguments places =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (places.size() != 2)
    throw ConfigError(fmt::format("wanted a file and a folder, found {} words", places.size()),
                      {.hint = "convoy models convert FILE.gguf FOLDER"});
  recipes::convert_model_file(places[0], places[1], flags, worker.log());
  return 0;
}

}  // namespace convoy::apps
