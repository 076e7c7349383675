// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/export_result.h"

#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"
#include "convoy/model/models/export.h"

namespace convoy::recipes {
namespace {

// Gathers the modules that an adapter trains whole: the units without frozen parameters.
std::vector<std::unique_ptr<nn::UnitUse>> use_trained_units(nn::CausalLm& model) {
  std::vector<std::unique_ptr<nn::UnitUse>> uses;
  const std::vector<nn::Unit> units = model.units();
  for (size_t index = 0; index < units.size(); ++index)
    if (!units[index].trained.empty() && units[index].frozen.empty())
      uses.push_back(std::make_unique<nn::UnitUse>(model.residency(), index));
  return uses;
}

// Logs the end tokens that the base model does not name and only the result has.
void say_new_ends(const Result& result, const Log& log) {
  std::vector<std::string> pieces;
  for (const int32_t id : models::unnamed_ends(result.loaded.folder, result.ends))
    pieces.push_back(fmt::format("`{}`", result.loaded.tokenizer.piece(id)));
  if (pieces.empty()) return;
  log.info(
      fmt::format("the rows end with {}, which {} does not name as an end of texts: the result's "
                  "generation_config.json does",
                  fmt::join(pieces, " and "), result.name));
}

}  // namespace

void export_result(const Result& result, const Log& log) {
  nn::CausalLm& model = *result.loaded.model;
  if (!result.loaded.lora) {
    models::export_model(model, result.loaded.folder, result.folder.model_folder(),
                         {.dtype = result.dtype,
                          .extent = result.extent,
                          .ends = result.ends,
                          .chat_template = result.loaded.given_template,
                          .writes = result.writes});
    say_new_ends(result, log);
    log.info(fmt::format("model written to {}", result.folder.model_folder().string()));
    log.info(fmt::format("try it: convoy generate --model {} --interactive",
                         result.folder.model_folder().string()));
    return;
  }
  const std::vector<std::unique_ptr<nn::UnitUse>> uses = use_trained_units(model);
  if (!result.writes) return;
  result.loaded.lora->save(result.folder.adapter_folder(), result.name);
  const auto generation = models::generation_config_text(result.loaded.folder, result.ends);
  if (generation)
    write_file_atomic(result.folder.adapter_folder() / "generation_config.json", *generation);
  if (const std::string& text = result.loaded.given_template; !text.empty())
    write_file_atomic(result.folder.adapter_folder() / "chat_template.jinja", text);
  say_new_ends(result, log);
  log.info(fmt::format("adapter written to {}", result.folder.adapter_folder().string()));
  log.info(fmt::format("try it: convoy generate --model {} --adapter {} --interactive", result.name,
                       result.folder.adapter_folder().string()));
}

}  // namespace convoy::recipes
