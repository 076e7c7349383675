// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/quantize_weights.h"

#include <filesystem>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/output_place.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/model/models/bitsandbytes_export.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

void check_flags(const settings::QuantizeFlags& flags) {
  if (flags.model.empty() == flags.tensors.empty())
    throw ConfigError("wanted one of --model FOLDER and --tensors FILE.safetensors",
                      {.hint = "leave one of them out"});
  if (flags.output.empty())
    throw ConfigError(
        "wanted --output",
        {.key = "output", .hint = "name a new folder or file, such as --output quantised"});
  if (flags.dtype != "auto" && !flags.dequantize)
    throw ConfigError("--dtype applies only with --dequantize; unquantised weights keep their type",
                      {.key = "dtype", .hint = "leave it out"});
  if (flags.double_quant && (flags.quantization == "int8" || flags.dequantize))
    throw ConfigError("--double-quant applies only to nf4 and fp4",
                      {.key = "double_quant", .hint = "leave it out"});
  if (!flags.skip_modules.names.empty() && (flags.model.empty() || flags.dequantize))
    throw ConfigError("--skip-modules applies only when a model is quantised",
                      {.key = "skip_modules", .hint = "leave it out"});
  if (flags.text_only && flags.model.empty())
    throw ConfigError("--text-only applies only with --model: a file has no text model",
                      {.key = "text_only", .hint = "leave it out"});
  if (flags.model.empty())
    require_new_file(flags.output);
  else
    require_new_folder(flags.output);
}

int64_t bytes_of(const fs::path& path) {
  if (fs::is_regular_file(path)) return static_cast<int64_t>(fs::file_size(path));
  int64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".safetensors")
      bytes += static_cast<int64_t>(entry.file_size());
  return bytes;
}

}  // namespace

void quantize_weights(const settings::QuantizeFlags& flags, const Log& log) {
  check_flags(flags);
  telemetry::ProgressOptions options{.label = flags.dequantize ? "dequantize" : "quantize",
                                     .unit = "tensor"};
  if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
  telemetry::Progress progress(options);
  const models::Advance advance = [&](int64_t done, int64_t) { progress.update({.done = done}); };
  const models::WeightCoding coding = weight_coding(flags.quantization, flags.double_quant,
                                                    flags.block_size, flags.skip_modules.names);
  std::optional<at::ScalarType> dtype;
  if (flags.dtype != "auto") dtype = device::parse_dtype(flags.dtype);
  fs::path source = flags.tensors;
  if (!flags.tensors.empty()) {
    if (flags.dequantize)
      models::write_decoded_tensors(source, flags.output, dtype, advance);
    else
      models::write_bitsandbytes_tensors(source, flags.output, *coding.format, advance);
  } else {
    const io::ModelFolder folder = io::ModelFolder::open(flags.model, flags.revision);
    for (const std::string& notice : folder.notices()) log.info(notice);
    source = folder.path();
    const models::Extent extent = models::extent_of(flags.text_only);
    if (flags.dequantize)
      models::write_decoded_model(folder, flags.output, dtype, advance, extent);
    else
      models::write_bitsandbytes_model(folder, flags.output, coding, advance, extent);
  }
  progress.finish();
  log.info(fmt::format("{} written: {} of weights become {}", flags.output,
                       telemetry::bytes_text(bytes_of(source)),
                       telemetry::bytes_text(bytes_of(flags.output))));
}

}  // namespace convoy::recipes
