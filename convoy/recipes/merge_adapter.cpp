// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/merge_adapter.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/device/dtype.h"
#include "convoy/models/export.h"
#include "convoy/models/registry.h"
#include "convoy/recipes/loaded_model.h"

namespace convoy::recipes {
namespace {

// "mixed" where the weights are stored in several.
std::string common_name(const std::map<std::string, at::ScalarType>& dtypes) {
  const at::ScalarType first = dtypes.begin()->second;
  for (const auto& [name, dtype] : dtypes)
    if (dtype != first) return "mixed";
  return device::dtype_name(first);
}

}  // namespace

void merge_adapter(const settings::ModelSourceFlags& model_flags, const settings::MergeFlags& flags,
                   const settings::RankFlags& ranks, const Log& log) {
  CONVOY_CHECK(!model_flags.adapter.empty(), ConfigError, "wanted --adapter FOLDER");
  CONVOY_CHECK(!flags.output.empty(), ConfigError, "wanted --output FOLDER");
  const std::filesystem::path output = flags.output;
  if (std::filesystem::exists(output) && !std::filesystem::is_empty(output))
    throw ConfigError("the output folder is not empty",
                      {.file = flags.output, .hint = "name a new one"});
  LoadedModel loaded = load_model({.name = model_flags.model,
                                   .revision = model_flags.revision,
                                   .adapter = model_flags.adapter,
                                   .dtype = "fp32",
                                   .template_path = "",
                                   .device = device::place_rank(ranks.devices, 0).device},
                                  log);
  loaded.lora->merge();
  models::ExportConfig stored;
  if (flags.dtype == "auto")
    stored.own_dtypes = models::stored_dtypes(loaded.folder);
  else
    stored.dtype = device::parse_dtype(flags.dtype);
  models::export_model(*loaded.model, loaded.folder, output, stored);
  const std::string dtype = flags.dtype == "auto" ? common_name(stored.own_dtypes) : flags.dtype;
  const nlohmann::ordered_json record = {{"base_model", model_flags.model},
                                         {"dtype", dtype},
                                         {"merged_from_adapters", {model_flags.adapter}},
                                         {"merge_base", "full"}};
  write_file_atomic(output / "convoy_merge.json", record.dump(2) + "\n");
  log.info(fmt::format("merged model written to {}, stored in {}", flags.output,
                       dtype == "mixed" ? "the types of the base" : dtype));
}

}  // namespace convoy::recipes
