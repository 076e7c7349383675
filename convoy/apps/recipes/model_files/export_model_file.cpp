// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/export_model_file.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/lora_gguf.h"
#include "convoy/apps/recipes/model_files/ollama_modelfile.h"
#include "convoy/apps/recipes/model_files/output_place.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/text/template_sources.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/model/models/checkpoint_rest.h"
#include "convoy/model/models/convert.h"
#include "convoy/model/models/gguf_export.h"
#include "convoy/model/models/registry.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

// Returns "tally-3m" for "examples/tally-3m/", "org/tally-3m" and "tally-3m.gguf".
std::string plain_name(const std::string& model) {
  fs::path path = fs::path(model).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  const std::string name =
      path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
  return name.empty() || name == "." || name == ".." ? "model" : name;
}

// Shows the number of finished tensors. The total is known only when the first tensor is finished.
class ExportProgress {
 public:
  ExportProgress(const char* label, const Log& log) : label_(label), log_(log) {}

  void operator()(int64_t done, int64_t total) {
    if (!shown_) {
      telemetry::ProgressOptions options{.label = label_, .unit = "tensor", .total = total};
      if (log_.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
      shown_.emplace(options);
    }
    shown_->update({.done = done});
  }
  void finish() {
    if (shown_) shown_->finish();
  }

 private:
  const char* label_;
  const Log& log_;
  std::optional<telemetry::Progress> shown_;
};

// Reads weights from their files. If the model is quantised, the weight that was decoded last stays
// in memory.
models::ReadElements read_files(const io::ModelFolder& folder) {
  struct Decoded {
    std::string name;
    at::Tensor values;
  };
  const auto weights =
      std::make_shared<const models::CheckpointWeights>(models::open_weights(folder));
  const auto decoded = std::make_shared<Decoded>();
  return [weights, decoded](const std::string& name, int64_t begin, const at::Tensor& out) {
    if (weights->find_stored_codes(name) == nullptr) {
      weights->read_elements(name, begin, out);
      return;
    }
    if (decoded->name != name)
      *decoded = {.name = name, .values = weights->read(name, at::kFloat).view({-1})};
    out.copy_(decoded->values.narrow(0, begin, out.numel()));
  };
}

// Reads the weights of a model in memory, with its adapter merged into them.
models::ReadElements read_merged(LoadedModel& loaded, const Log& log) {
  bool any_codes = false;
  for (nn::Linear* const linear : loaded.model->block_linears()) {
    any_codes = any_codes || linear->is_bitsandbytes();
    linear->decode();
  }
  if (any_codes)
    log.info("the adapter is merged into the dequantised weights, with which it was trained");
  loaded.lora->merge();
  auto values = std::make_shared<std::map<std::string, at::Tensor>>();
  for (const nn::NamedTensor& parameter : loaded.model->parameters())
    values->emplace(parameter.name, parameter.value.detach().contiguous().view({-1}));
  return [values](const std::string& name, int64_t begin, const at::Tensor& out) {
    out.copy_(values->at(name).narrow(0, begin, out.numel()));
  };
}

void check_type(const settings::ModelExportFlags& flags, const gguf::FileType& type) {
  if (!flags.adapter_only) return;
  if (flags.format != "gguf")
    throw ConfigError("--adapter-only writes a file, and no Modelfile beside it",
                      {.key = "adapter_only", .hint = "leave --format out"});
  if (gguf::info_of(type.usual).block_values > 1)
    throw ConfigError(fmt::format("an adapter is written in floats, not in {}", type.name),
                      {.key = "type", .hint = "--type f16, or f32"});
}

struct Places {
  fs::path file;
  fs::path folder;  // with --format ollama, the folder of the file and its Modelfile; else empty
};

Places places_of(const settings::ModelExportFlags& flags, const std::string& model) {
  const std::string stem =
      fmt::format("{}-{}{}", plain_name(model), flags.type, flags.adapter_only ? "-adapter" : "");
  Places places;
  if (flags.format == "ollama") {
    places.folder = flags.output.empty() ? fs::path(stem) : fs::path(flags.output);
    places.file = places.folder / (stem + ".gguf");
    require_new_folder(places.folder);
    return places;
  }
  places.file = flags.output.empty() ? fs::path(stem + ".gguf") : fs::path(flags.output);
  require_new_file(places.file);
  return places;
}

// The model to export: its files, or a model in memory with its adapter merged.
struct Source {
  std::optional<io::ModelFolder> files;
  std::optional<LoadedModel> merged;
  models::ReadElements read;
  std::vector<int32_t> ends;

  const io::ModelFolder& folder() const { return merged ? merged->folder : *files; }
  // An adapter may have its own template.
  std::string template_text() const {
    if (merged && !merged->given_template.empty()) return merged->given_template;
    return text::usual_template_text(folder().path());
  }
  std::optional<text::ChatTemplate> take_template() {
    return merged ? std::move(merged->chat_template) : text::ChatTemplate::load(files->path());
  }
};

Source source_of(const std::string& model, const std::string& adapter,
                 const settings::ModelExportFlags& flags, const Log& log) {
  Source source;
  if (adapter.empty()) {
    source.files = io::ModelFolder::open(model, flags.revision);
    for (const std::string& notice : source.files->notices()) log.info(notice);
    source.read = read_files(*source.files);
    return source;
  }
  source.merged = load_model({.name = model,
                              .revision = flags.revision,
                              .adapter = adapter,
                              .dtype = "fp32",
                              .device = at::kCPU},
                             log);
  if (flags.adapter_only) return source;
  source.read = read_merged(*source.merged, log);
  source.ends = adapter_end_ids(adapter, source.merged->tokenizer);
  return source;
}

}  // namespace

void export_model_file(const settings::ModelExportFlags& flags, const Log& log) {
  if (flags.model.empty())
    throw ConfigError("no model given", {.key = "model", .hint = "convoy models export MODEL"});
  const gguf::FileType& type = gguf::file_type(flags.type);
  check_type(flags, type);
  std::string model = flags.model, adapter = flags.adapter;
  if (const auto start = adapter_start(model, log); start && adapter.empty()) {
    model = start->base;
    adapter = start->adapter;
  }
  if (flags.adapter_only && adapter.empty())
    throw ConfigError("--adapter-only needs --adapter FOLDER",
                      {.hint = "leave --adapter-only out to write the model itself"});
  const Places places = places_of(flags, flags.model);
  Source source = source_of(model, adapter, flags, log);
  if (flags.adapter_only) {
    write_lora_gguf(*source.merged, type, places.file);
    log.info(
        fmt::format("{} written: the adapter alone, for {} as GGUF", places.file.string(), model));
    return;
  }
  ExportProgress progress("export", log);
  const std::vector<std::string> notices =
      models::export_gguf(source.folder(), source.read, places.file,
                          {.type = type,
                           .ends = source.ends,
                           .name = plain_name(flags.model),
                           .chat_template = source.template_text(),
                           .advance = [&](int64_t done, int64_t total) { progress(done, total); }});
  progress.finish();
  for (const std::string& notice : notices) log.warning(notice);
  if (models::holds_more_than_text(source.folder()))
    log.warning(
        fmt::format("{} holds the text model alone: the rest of {} belongs into a file of its own, "
                    "which llama.cpp's convert_hf_to_gguf.py --mmproj writes",
                    places.file.string(), model));
  log.info(fmt::format("{} written: {}", places.file.string(),
                       telemetry::bytes_text(static_cast<int64_t>(fs::file_size(places.file)))));
  if (places.folder.empty()) return;
  const std::optional<text::ChatTemplate> chat_template = source.take_template();
  const Modelfile modelfile =
      make_modelfile(source.folder(), chat_template ? &*chat_template : nullptr, source.ends,
                     places.file.filename().string());
  for (const std::string& notice : modelfile.notices) log.warning(notice);
  write_file_atomic(places.folder / "Modelfile", modelfile.text);
  log.info(fmt::format("{} written: `ollama create {} -f {}` takes it",
                       (places.folder / "Modelfile").string(), plain_name(flags.model),
                       (places.folder / "Modelfile").string()));
}

void convert_model_file(const std::string& source, const std::string& output,
                        const settings::ModelConvertFlags& flags, const Log& log) {
  require_new_folder(output);
  if (!flags.base.empty()) {
    if (flags.dtype != "auto" && flags.dtype != "fp32")
      throw ConfigError("adapters are written in fp32", {.key = "dtype", .hint = "leave it out"});
    convert_lora_gguf(source, io::ModelFolder::open(flags.base), output);
    log.info(fmt::format("{} written from {}: a PEFT adapter of {}", output, source, flags.base));
    return;
  }
  const io::ModelFolder folder = io::ModelFolder::open(source);
  if (!folder.is_gguf())
    throw ConfigError(
        "wanted a GGUF file; this is a model folder already",
        {.file = source,
         .hint = "convoy models export makes a GGUF file of it, convoy models quantize "
                 "changes its types"});
  for (const std::string& notice : folder.notices()) log.warning(notice);
  ExportProgress progress("convert", log);
  std::optional<at::ScalarType> dtype;
  if (flags.dtype != "auto") dtype = device::parse_dtype(flags.dtype);
  models::convert_model(folder, output, dtype,
                        [&](int64_t done, int64_t total) { progress(done, total); });
  progress.finish();
  log.info(fmt::format("{} written from {}", output, source));
}

}  // namespace convoy::recipes
