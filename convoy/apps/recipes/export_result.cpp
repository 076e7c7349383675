// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/export_result.h"

#include <memory>
#include <vector>

#include "convoy/model/models/export.h"

namespace convoy::recipes {
namespace {

// Modules that an adapter trains whole are the units without frozen parameters.
std::vector<std::unique_ptr<nn::UnitUse>> use_trained_units(nn::CausalLm& model) {
  std::vector<std::unique_ptr<nn::UnitUse>> uses;
  const std::vector<nn::Unit> units = model.units();
  for (size_t index = 0; index < units.size(); ++index)
    if (!units[index].trained.empty() && units[index].frozen.empty())
      uses.push_back(std::make_unique<nn::UnitUse>(model.residency(), index));
  return uses;
}

}  // namespace

void export_result(const Result& result, const Log& log) {
  nn::CausalLm& model = *result.loaded.model;
  if (!result.loaded.lora) {
    models::export_model(model, result.loaded.folder, result.folder.model_folder(),
                         {.dtype = result.dtype, .writes = result.writes});
    log.info(fmt::format("model written to {}", result.folder.model_folder().string()));
    log.info(fmt::format("try it: convoy generate --model {} --interactive",
                         result.folder.model_folder().string()));
    return;
  }
  const std::vector<std::unique_ptr<nn::UnitUse>> uses = use_trained_units(model);
  if (!result.writes) return;
  result.loaded.lora->save(result.folder.adapter_folder(), result.name);
  log.info(fmt::format("adapter written to {}", result.folder.adapter_folder().string()));
  log.info(fmt::format("try it: convoy generate --model {} --adapter {} --interactive", result.name,
                       result.folder.adapter_folder().string()));
}

}  // namespace convoy::recipes
