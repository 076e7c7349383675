// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/merge_adapter.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/device/dtype.h"
#include "convoy/device/stored_tensor.h"
#include "convoy/models/export.h"
#include "convoy/recipes/loaded_model.h"

namespace convoy::recipes {
namespace {

// The type most of the base's weights are stored in.
std::string stored_dtype_of(const io::ModelFolder& folder) {
  const io::ModelWeights weights(folder);
  for (const std::string& name : weights.names())
    if (weights.require(name).dtype == io::Dtype::F32) return "fp32";
  return "bf16";
}

}  // namespace

void merge_adapter(const settings::ModelFlags& model_flags, const settings::MergeFlags& flags,
                   const Log& log) {
  CONVOY_CHECK(!model_flags.adapter.empty(), ConfigError, "wanted --adapter FOLDER");
  CONVOY_CHECK(!flags.output.empty(), ConfigError, "wanted --output FOLDER");
  const std::filesystem::path output = flags.output;
  if (std::filesystem::exists(output) && !std::filesystem::is_empty(output))
    throw ConfigError("the output folder is not empty",
                      {.file = flags.output, .hint = "name a new one"});
  settings::ModelFlags exact = model_flags;
  exact.dtype = "fp32";
  LoadedModel loaded = load_model(model_request(exact, ""), log);
  loaded.lora->merge();
  const std::string dtype =
      flags.save_dtype == "auto" ? stored_dtype_of(loaded.folder) : flags.save_dtype;
  models::export_model(*loaded.model, loaded.folder, output, {.dtype = device::parse_dtype(dtype)});
  const nlohmann::ordered_json record = {{"base_model", model_flags.model},
                                         {"dtype", dtype},
                                         {"merged_from_adapters", {model_flags.adapter}},
                                         {"merge_base", "full"}};
  write_file_atomic(output / "convoy_merge.json", record.dump(2) + "\n");
  log.info(fmt::format("merged model written to {}", flags.output));
}

}  // namespace convoy::recipes
