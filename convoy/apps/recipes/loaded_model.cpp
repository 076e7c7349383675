// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/loaded_model.h"

#include <limits>

#include "convoy/apps/recipes/compute_machine.h"
#include "convoy/core/base/bytes_text.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/masks/answer_ends.h"
#include "convoy/data/text/tokenizer_settings.h"
#include "convoy/machine/device/determinism.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/model/adapters/adapter_file.h"
#include "convoy/model/adapters/gguf_lora.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/sizing/compute_dtype.h"
#include "convoy/model/sizing/memory_estimate.h"

namespace convoy::recipes {

models::WeightCoding weight_coding(const std::string& type, bool double_quant, int64_t block_size,
                                   std::vector<std::string> skip_modules) {
  models::WeightCoding coding{.format = {}, .skip_modules = std::move(skip_modules)};
  if (type == "none" || type == "auto") return coding;
  using kernels::CodeType;
  const CodeType code = type == "int8"  ? CodeType::Int8
                        : type == "fp4" ? CodeType::Fp4
                                        : CodeType::Nf4;
  coding.format = kernels::BitsandbytesFormat{
      .type = code, .block = block_size, .nested = double_quant && code != CodeType::Int8};
  return coding;
}

std::string coding_text(nn::CausalLm& model) {
  std::string whole;
  std::string text = "none";
  for (const nn::Linear* linear : model.block_linears()) {
    if (!linear->is_bitsandbytes()) {
      whole += " " + linear->name();
      continue;
    }
    const kernels::BitsandbytesFormat& format = linear->coded().format;
    text = kernels::code_type_name(format.type);
    if (format.type != kernels::CodeType::Int8) text += fmt::format(", blocks of {}", format.block);
    if (format.nested) text += ", double";
  }
  if (text != "none" && !whole.empty())
    text += fmt::format(", but {}", sha256_hex(whole).substr(0, 8));
  return text;
}

void code_linears(nn::CausalLm& model, const kernels::BitsandbytesFormat& format) {
  const at::Device device = model.device();
  for (nn::Linear* linear : model.block_linears())
    linear->set_bitsandbytes(kernels::encode_weight(linear->weight().cpu(), format).to(device));
}

void require_one_format(const std::string& quantization, bool double_quant,
                        const std::string& weights) {
  if (double_quant && quantization != "nf4" && quantization != "fp4")
    throw ConfigError("--double-quant applies only to nf4 and fp4",
                      {.key = "double_quant", .hint = "add --quantization nf4, or leave it out"});
  if (weights != "model" && quantization != "auto" && quantization != "none")
    throw ConfigError("--weights and --quantization both set the format of linear layers",
                      {.key = "weights", .hint = "give one of them"});
}

void require_codes_of_activations(const std::string& activations, const std::string& weights,
                                  at::Device device) {
  if (activations == "model") return;
  if (weights == "model")
    throw ConfigError(settings::kActivationsNeedCodes,
                      {.key = "activations", .hint = settings::kActivationsNeedCodesHint});
  if (!device.is_cpu())
    throw ConfigError("--activations int8 multiplies whole numbers on CPUs alone",
                      {.key = "activations", .hint = "use --devices cpu, or leave it out"});
}

// The head has 8 bits even with int4: no later layer averages its errors.
void quantize_linears(nn::CausalLm& model, const std::string& weights,
                      const std::string& activations) {
  const auto rows =
      activations == "int8" ? kernels::ActivationFormat::Int8 : kernels::ActivationFormat::Model;
  const kernels::IntegerFormat eight_bits{.weight = kernels::WeightFormat::Int8,
                                          .activations = rows};
  const kernels::IntegerFormat four_bits{
      .weight = kernels::WeightFormat::Int4Zero, .group_inputs = 32, .activations = rows};
  model.quantize_blocks(weights == "int4" ? four_bits : eight_bits);
  model.head().quantize(eight_bits);
}

void require_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab_size,
                        const io::ModelFolder& folder) {
  if (tokenizer.vocab_size() <= vocab_size) return;
  throw DataError(fmt::format("the tokenizer has ids up to {}, the model's vocabulary ends at {}",
                              tokenizer.vocab_size() - 1, vocab_size - 1),
                  {.file = folder.path().string(),
                   .hint = "tokenizer and weights belong to two different models"});
}

std::optional<AdapterStart> adapter_start(const std::string& name, const Log& log) {
  const std::optional<std::string> base = io::base_of_adapter_folder(name);
  if (!base) return std::nullopt;
  log.info(fmt::format("{} is a PEFT adapter of {}: both are used", name, *base));
  if (const auto notice = io::trainer_checkpoint_notice(name)) log.info(*notice);
  return AdapterStart{.base = *base, .adapter = name};
}

void require_adapter(const std::filesystem::path& adapter, const Log& log) {
  adapters::AdapterFile::require(adapter);
  for (const std::string& notice : adapters::gguf_lora_notices(adapter)) log.warning(notice);
}

namespace {

// Sets `chat_template` to the template with which the adapter was trained, if that differs from the
// base's. Returns the text of that template; empty when the base's template is kept.
std::string take_adapter_template(const ModelRequest& request, const io::ModelFolder& folder,
                                  std::optional<text::ChatTemplate>& chat_template,
                                  const Log& log) {
  const std::filesystem::path path = std::filesystem::path(request.adapter) / "chat_template.jinja";
  if (request.adapter.empty() || !std::filesystem::exists(path)) return {};
  std::optional<text::ChatTemplate> own =
      text::ChatTemplate::load(folder.path(), path, request.eos_token);
  if (chat_template && chat_template->content_hash() == own->content_hash()) return {};
  log.info(fmt::format("the chat template is the adapter's: {}; --template-path names another one",
                       path.string()));
  chat_template = std::move(own);
  return read_file(path);
}

sizing::DtypeChoice dtype_of(const ModelRequest& request, const io::ModelFolder& folder) {
  if (request.dtype != "auto") return {request.dtype, request.dtype_reason};
  sizing::DtypeQuestion question = sizing::dtype_question(
      compute_machine({.device = request.device, .has_bf16 = request.has_bf16}));
  question.fp32_bytes = sizing::count_parameters(families::read_decoder_spec(folder)) *
                        static_cast<int64_t>(sizeof(float));
  return sizing::choose_dtype(question);
}

// Shows the progress of reading the weights, when that takes longer than a moment.
class LoadProgress {
 public:
  explicit LoadProgress(const Log& log) : is_quiet_(log.level() == LogLevel::Quiet) {}
  ~LoadProgress() {
    if (progress_) progress_->finish();
  }
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  void update(int64_t done, int64_t total) {
    if (is_quiet_) return;
    if (!progress_)
      progress_.emplace(telemetry::ProgressOptions{
          .label = "load", .unit = "tensor", .total = total, .quiet_seconds = 1});
    progress_->update({.done = done});
  }

 private:
  bool is_quiet_;
  std::optional<telemetry::Progress> progress_;
};

void say_loading(const ModelRequest& request, const io::ModelFolder& folder,
                 const sizing::DtypeChoice& dtype, const Log& log) {
  log.info(fmt::format(
      "loading {} ({}){} in {}", request.name, bytes_text(io::ModelWeights(folder).total_bytes()),
      request.adapter.empty() ? "" : fmt::format(" with the adapter {}", request.adapter),
      dtype.text(request.dtype_flag)));
}

}  // namespace

OpenedModel open_model(const ModelRequest& given, const Log& log) {
  ModelRequest request = given;
  if (request.name.empty())
    throw ConfigError("no model given",
                      {.key = "model.name", .hint = "give a model folder or a hub id"});
  if (const auto start = adapter_start(request.name, log)) {
    if (!request.adapter.empty())
      throw ConfigError(
          fmt::format("{} is itself an adapter, and {} another one", request.name, request.adapter),
          {.key = "adapter", .hint = "name the base as the model"});
    request.name = start->base;
    request.adapter = start->adapter;
  }
  io::ModelFolder folder = io::ModelFolder::open(request.name, request.revision);
  if (!request.adapter.empty()) require_adapter(request.adapter, log);
  for (const std::string& notice : folder.notices()) log.info(notice);
  text::Tokenizer tokenizer = text::Tokenizer::load(folder.path(), request.eos_token);
  if (const std::string letters = tokenizer.missing_letters(); !letters.empty()) log.info(letters);
  std::optional<text::ChatTemplate> chat_template =
      text::ChatTemplate::load(folder.path(), request.template_path, request.eos_token);
  std::string given_template = request.template_path.empty()
                                   ? take_adapter_template(request, folder, chat_template, log)
                                   : read_file(request.template_path);
  const sizing::DtypeChoice dtype = dtype_of(request, folder);
  say_loading(request, folder, dtype, log);
  return {.request = std::move(request),
          .dtype = dtype.dtype,
          .folder = std::move(folder),
          .tokenizer = std::move(tokenizer),
          .chat_template = std::move(chat_template),
          .given_template = std::move(given_template)};
}

void say_generation_memory(const OpenedModel& model, const settings::EngineFlags& engine,
                           const sizing::GenerationRows& rows, int processes_on_host,
                           const Log& log) {
  const ModelRequest& request = model.request;
  const bool on_cpu = request.device.is_cpu();
  const std::optional<models::WeightCoding> stored =
      models::read_quantization_config(model.folder.config());
  const auto& format = stored && stored->format ? stored->format : request.coding.format;
  const int64_t usable_bytes = device::usable_rank_memory_bytes(request.device, processes_on_host);
  sizing::GenerationRequest question{
      .dtype = model.dtype,
      .weights = engine.weights,
      .quantization = format ? std::string(kernels::code_type_name(format->type)) : "none",
      .double_quant = format && format->nested,
      .rows = rows,
      .hardware = on_cpu ? sizing::Hardware::Cpu : sizing::Hardware::Gpu,
      .program_bytes = on_cpu ? device::process_memory().resident_bytes : 0};
  const architecture::DecoderSpec spec = families::read_decoder_spec(model.folder);
  sizing::GenerationMemory memory = sizing::plan_generation(spec, question);
  const int64_t all_bytes = usable_bytes + question.program_bytes;
  if (usable_bytes > 0 && engine.kv_blocks.is_auto()) memory.bound_kv(all_bytes);
  const std::string text = fmt::format("memory of an engine: {}", memory.text());
  if (usable_bytes > 0 && memory.total_bytes() > all_bytes)
    log.warning(
        fmt::format("{}, which does not fit: there are {}; take --dtype bf16, --weights "
                    "int8 or int4, --kv-dtype int8, or fewer rows (--batch-size)",
                    text, bytes_text(all_bytes)));
  else
    log.info(text);
}

LoadedModel load_model(const ModelRequest& request, const Log& log) {
  return load_weights(open_model(request, log), log);
}

LoadedModel load_weights(OpenedModel opened, const Log& log) {
  const ModelRequest& request = opened.request;
  io::ModelFolder folder = std::move(opened.folder);
  text::Tokenizer tokenizer = std::move(opened.tokenizer);
  std::optional<text::ChatTemplate> chat_template = std::move(opened.chat_template);
  std::string given_template = std::move(opened.given_template);
  const at::ScalarType dtype = device::parse_dtype(opened.dtype);
  LoadProgress progress(log);
  std::unique_ptr<nn::DeferredValues> values;
  if (request.deferred) values = std::make_unique<nn::DeferredValues>();
  std::unique_ptr<nn::CausalLm> model =
      values ? models::declare_causal_lm(folder, dtype, request.device, *values, request.coding)
             : models::load_causal_lm(
                   folder, dtype, request.device, request.coding,
                   [&](int64_t done, int64_t total) { progress.update(done, total); });
  require_vocabulary(tokenizer, model->vocab_size(), folder);
  if (request.joins_projections && !request.deferred) model->join_projections();
  std::optional<adapters::LoraModel> lora;
  if (!request.adapter.empty()) {
    lora = adapters::LoraModel::load(*model, request.adapter);
    for (const auto& [key, pattern] : lora->unmatched())
      log.warning(fmt::format("{}: {} `{}` matches no module that it could change", request.adapter,
                              key, pattern));
    if (const auto& left = lora->left_to_model(); !left.empty())
      log.warning(fmt::format(
          "{}: modules_to_save means {} too, such as {}, which the file does not have: they stay "
          "those of the model",
          request.adapter, counted(std::ssize(left), "module"), left.front()));
  }
  require_codes_of_activations(request.activations, request.weights, request.device);
  if (request.weights != "model") {
    if (request.activations == "int8")
      log.info(
          fmt::format("linear layers multiply {} weights with inputs rounded to 8 bits, 32 "
                      "at a time (--activations int8)",
                      request.weights));
    if (lora && lora->config().use_dora)
      throw ConfigError("a DoRA adapter needs unquantised weights",
                        {.key = "weights", .hint = "merge the adapter, or leave --weights out"});
    quantize_linears(*model, request.weights, request.activations);
  }
  std::vector<int32_t> end_ids = families::end_token_ids(folder);
  if (!request.adapter.empty()) {
    const std::vector<int32_t> own = adapter_end_ids(request.adapter, tokenizer);
    end_ids.insert(end_ids.end(), own.begin(), own.end());
  }
  std::vector<int32_t> turn_end_ids;
  if (chat_template)
    if (const auto id = data::turn_end(*chat_template, tokenizer)) turn_end_ids.push_back(*id);
  return {.folder = std::move(folder),
          .tokenizer = std::move(tokenizer),
          .chat_template = std::move(chat_template),
          .model = std::move(model),
          .values = std::move(values),
          .lora = std::move(lora),
          .end_ids = std::move(end_ids),
          .turn_end_ids = std::move(turn_end_ids),
          .given_template = std::move(given_template)};
}

void read_values(LoadedModel& loaded) {
  for (const nn::NamedTensor& parameter : loaded.model->parameters()) {
    if (!loaded.values->contains(parameter.value)) continue;
    device::take_memory(parameter.value);
    loaded.values->read(parameter.value, 0, parameter.value.detach().view({-1}));
  }
  loaded.values.reset();
}

ModelRequest model_request(const settings::ModelFlags& flags, const std::string& template_path,
                           const device::RankDevice& rank_device) {
  device::require_dtype(rank_device, flags.dtype);
  const settings::QuantizationFlags& held = flags.held;
  require_one_format(held.quantization, held.double_quant);
  return {.name = flags.model,
          .revision = flags.revision,
          .adapter = flags.adapter,
          .dtype = flags.dtype,
          .has_bf16 = rank_device.has_bf16,
          .template_path = template_path,
          .device = rank_device.device,
          .coding = weight_coding(held.quantization, held.double_quant, held.block_size,
                                  held.skip_modules.names)};
}

ModelRequest model_request(const settings::ModelFlags& flags, const settings::EngineFlags& engine,
                           const std::string& template_path,
                           const device::RankDevice& rank_device) {
  ModelRequest request = model_request(flags, template_path, rank_device);
  request.weights = engine.weights;
  request.activations = engine.activations;
  require_codes_of_activations(engine.activations, engine.weights, rank_device.device);
  request.joins_projections = true;
  require_one_format(flags.held.quantization, flags.held.double_quant, engine.weights);
  // Nothing to do on CPUs, where an answer never depends on other answers.
  if (engine.deterministic && !rank_device.device.is_cpu()) device::take_deterministic_algorithms();
  return request;
}

settings::ModelSampling model_sampling(const io::ModelFolder& folder) {
  const auto& config = folder.generation_config();
  return config ? settings::read_model_sampling(config->value(), config->place())
                : settings::ModelSampling();
}

std::vector<int32_t> adapter_end_ids(const std::filesystem::path& folder,
                                     const text::Tokenizer& tokenizer) {
  constexpr int64_t kMostId = std::numeric_limits<int32_t>::max();
  if (gguf::is_gguf_file(folder)) return {};
  const io::ModelFolder files = io::ModelFolder::open_without_config(folder.string());
  std::vector<int32_t> ids;
  if (const auto file = files.find("generation_config.json"))
    for (const int64_t id : io::JsonReader(io::read_json_file(*file), file->string())
                                .ints_or_empty("eos_token_id", 0, kMostId))
      ids.push_back(static_cast<int32_t>(id));
  const auto eos = text::TokenizerSettings::load(folder).named("eos_token");
  const auto id = eos ? tokenizer.id_of(*eos) : std::nullopt;
  if (id) ids.push_back(*id);
  return ids;
}

std::string weights_checksum(const LoadedModel& loaded) {
  uint32_t checksum = 0;
  for (const nn::NamedTensor& parameter : loaded.model->parameters()) {
    at::Tensor value = parameter.value.detach();
    if (loaded.values != nullptr && loaded.values->contains(parameter.value)) {
      value = at::empty({parameter.value.numel()}, parameter.value.options().device(at::kCPU));
      loaded.values->read(parameter.value, 0, value);
    }
    value = value.cpu().contiguous();
    checksum = crc32c({static_cast<const char*>(value.const_data_ptr()), value.nbytes()}, checksum);
  }
  return fmt::format("{:08x}", checksum);
}

}  // namespace convoy::recipes
