// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/lora_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/adapters/adapter_file.h"

namespace convoy::adapters {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEmbedding = "model.embed_tokens";
constexpr const char* kHead = "lm_head";
constexpr const char* kOtherBase = "the adapter belongs to another base model: name that one";
constexpr const char* kUntieFirst =
    "in Python, merged = PeftModel.from_pretrained(base, ADAPTER).merge_and_unload(), "
    "merged.config.tie_word_embeddings = False, merged.save_pretrained(OUT); then use OUT";

std::string weight_of(const char* module, const ModuleNames& names) {
  return fmt::format("{}{}.weight", kPeftPrefix, names.of(module));
}

// `tensor`: a tensor's name in PEFT, with modules named as in `names`.
bool is_embedding(const std::string& tensor, const ModuleNames& names) {
  return tensor == weight_of(kEmbedding, names) || tensor == weight_of(kHead, names);
}

void require_shape(const io::TensorView& view, const at::Tensor& value, const ModuleNames& names,
                   const fs::path& file) {
  const std::string& name = view.name;
  if (view.shape == value.sizes().vec()) return;
  ErrorLocation location{.file = file.string(), .key = name, .hint = kOtherBase};
  if (is_embedding(name, names) && !view.shape.empty())
    location.hint = fmt::format(
        "the adapter was trained with a vocabulary of {0} tokens: in Python, "
        "base.resize_token_embeddings({0}), PeftModel.from_pretrained(base, ADAPTER)"
        ".merge_and_unload().save_pretrained(OUT), tokenizer.save_pretrained(OUT); then use OUT",
        view.shape[0]);
  throw DataError(fmt::format("{}: wanted shape [{}], found [{}]", name,
                              fmt::join(value.sizes(), ", "), fmt::join(view.shape, ", ")),
                  location);
}

// nn.Linear's default initialisation, which PEFT takes for A: U(-1/sqrt(in), 1/sqrt(in)).
at::Tensor initial_a(int64_t rank, int64_t in_features, uint64_t seed, const std::string& module) {
  const uint64_t words[] = {seed, crc32c(module)};
  const at::Generator generator = at::detail::createCPUGenerator(mix_seed(words));
  const double bound = 1.0 / std::sqrt(static_cast<double>(in_features));
  return at::empty({rank, in_features}, at::kFloat).uniform_(-bound, bound, generator);
}

std::string last_component(const std::string& name) { return name.substr(name.rfind('.') + 1); }

std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// `modules`: the modules that could have matched.
[[noreturn]] void refuse_unmatched(const LoraConfig::Unmatched& wrong,
                                   const std::vector<std::string>& modules,
                                   const char* problem = "no module of the model is called") {
  std::set<std::string> endings;
  for (const std::string& module : modules) endings.insert(last_component(module));
  const std::vector<std::string> known(endings.begin(), endings.end());
  throw ConfigError(fmt::format("{} `{}`{}; it has {}", problem, wrong.pattern,
                                did_you_mean(wrong.pattern, known), fmt::join(known, ", ")),
                    {.key = wrong.key, .hint = fmt::format("correct {}", wrong.key)});
}

// A name that matches no module would otherwise train nothing, silently.
template <class Matches>
void check_names_match(const std::vector<std::string>& names,
                       const std::vector<std::string>& modules, const char* key,
                       const Matches& matches) {
  for (const std::string& name : names)
    if (std::none_of(modules.begin(), modules.end(),
                     [&](const std::string& module) { return matches(name, module); }))
      refuse_unmatched({key, name}, modules);
}

bool ends_at_a_dot(const std::string& name, const std::string& module) {
  return module == name || module.ends_with("." + name);
}

// True for the name "norm" with the modules "model.norm" and "model.norm.inner", but not with
// "model.input_layernorm".
bool lies_at_a_dot(const std::vector<std::string>& names, const std::string& module) {
  return std::any_of(names.begin(), names.end(), [&module](const std::string& name) {
    return ("." + module + ".").find("." + name + ".") != std::string::npos;
  });
}

// PEFT silently accepts a layer that does not exist.
void check_layers_exist(const std::vector<int64_t>& layers,
                        const std::vector<std::string>& modules) {
  std::set<int64_t> known;
  for (const std::string& module : modules)
    if (const auto layer = LoraConfig::layer_of(module)) known.insert(*layer);
  for (const int64_t layer : layers)
    if (!known.contains(layer))
      throw ConfigError(
          fmt::format("the model has no layer {}; it has 0 to {}", layer,
                      known.empty() ? -1 : *known.rbegin()),
          {.key = "layers_to_transform", .hint = "leave it out of layers_to_transform"});
}

void refuse_tied_modules(const LoraConfig& config, const ModuleNames& names, nn::CausalLm& model) {
  for (const char* name : {kHead, kEmbedding})
    if (model.head_is_tied() && !config.ensure_weight_tying && config.saves_whole(names.of(name)))
      throw ConfigError(
          fmt::format(
              "`{}` cannot be trained whole here: embedding and output head are one tensor in "
              "this model, and the adapter file would hold only one of the two",
              name),
          {.key = "modules_to_save", .hint = "use tuning.mode full, or leave it out"});
  for (const char* name : {kHead, kEmbedding})
    if (!config.all_linear && config.targets(names.of(name)))
      throw ConfigError(fmt::format("LoRA on `{}` is not supported", name),
                        {.key = "target_modules", .hint = "list it in modules_to_save instead"});
}

std::unordered_map<nn::Linear*, size_t> units_by_linear(nn::CausalLm& model) {
  std::unordered_map<nn::Linear*, size_t> found;
  const std::vector<nn::Unit> units = model.units();
  for (size_t index = 0; index < units.size(); ++index)
    for (nn::Linear* linear : units[index].linears) found[linear] = index;
  return found;
}

// `modules`: the modules of the model.
[[noreturn]] void refuse_no_module(const LoraConfig& config,
                                   const std::vector<std::string>& modules) {
  LoraConfig whole = config;
  const auto num_targets = [&] {
    return std::ranges::count_if(modules,
                                 [&](const std::string& module) { return whole.targets(module); });
  };
  whole.exclude_names.clear();
  whole.exclude_pattern.clear();
  if (const auto count = num_targets(); count > 0)
    throw ConfigError(
        fmt::format("exclude_modules leaves out every module that target_modules names: all {}",
                    count),
        {.key = "exclude_modules", .hint = "leave fewer modules out"});
  whole.layers_to_transform.clear();
  if (num_targets() > 0)
    throw ConfigError(
        "no module that target_modules names lies in the layers to transform",
        {.key = "layers_to_transform",
         .hint = "name layers that hold these modules, or leave layers_to_transform out"});
  throw ConfigError("no module of the model matches tuning.lora.target_modules",
                    {.key = "target_modules",
                     .hint = "target_modules: auto trains all linear layers of the model"});
}

// An adapter of a whole multimodal model may change parts beside the text model. Those changes
// would be lost.
void refuse_other_parts(const AdapterFile& file, const ModuleNames& names) {
  const size_t prefix = std::string_view(kPeftPrefix).size();
  std::vector<std::string> others;
  for (const io::TensorView& view : file.tensors())
    if (view.name.starts_with(kPeftPrefix) && !names.hold(view.name.substr(prefix)))
      others.push_back(view.name);
  if (others.empty()) return;
  throw DataError(
      fmt::format("the adapter changes more than the text model, which is all that Convoy "
                  "computes: {} of its {} tensors, such as {}",
                  others.size(), file.tensors().size(), others.front()),
      {.file = file.path().string(),
       .key = others.front(),
       .hint = "train it with modules of the text model alone, in PEFT as "
               "target_modules=r\".*language_model.*\\.(q_proj|v_proj)\""});
}

// PEFT's users exclude the vision tower by a pattern, which matches no module of the text model.
bool leaves_out_other_parts(const LoraConfig::Unmatched& pattern, const ModuleNames& names) {
  return names != ModuleNames{} && pattern.key == std::string_view("exclude_modules");
}

}  // namespace

LoraModel::LoraModel(LoraConfig config, ModuleNames names, const nn::CausalLm& model)
    : config_(std::move(config)),
      names_(std::move(names)),
      saved_names_(names_in_whole(model.text_module())) {}

void LoraModel::attach(nn::CausalLm& model) {
  refuse_tied_modules(config_, names_, model);
  model.set_requires_grad(false);
  std::vector<std::string> modules;
  for (nn::Linear* linear : model.block_linears()) modules.push_back(names_.of(linear->name()));
  check_names_match(config_.target_names, modules, "target_modules", ends_at_a_dot);
  check_layers_exist(config_.layers_to_transform, modules);

  const std::unordered_map<nn::Linear*, size_t> unit_of = units_by_linear(model);
  const auto factors = std::make_shared<RoundedFactors>();
  for (nn::Linear* linear : model.block_linears()) {
    const std::string module = names_.of(linear->name());
    if (!config_.targets(module)) continue;
    const int64_t rank = config_.rank_of(module);
    const auto options = at::TensorOptions().dtype(at::kFloat).device(model.device());
    at::Tensor a_RI = at::zeros({rank, linear->in_features()}, options).requires_grad_();
    at::Tensor b_OR = at::zeros({linear->out_features(), rank}, options).requires_grad_();
    at::Tensor magnitude_O;
    const std::string prefix = kPeftPrefix + saved_names_.of(linear->name());
    std::vector<nn::NamedTensor> leaves{{prefix + ".lora_A.weight", a_RI},
                                        {prefix + ".lora_B.weight", b_OR}};
    if (config_.use_dora) {
      const nn::UnitUse use(model.residency(), unit_of.at(linear));
      magnitude_O =
          at::linalg_vector_norm(linear->values().to(at::kFloat), 2, {1}).detach().requires_grad_();
      leaves.push_back({prefix + ".lora_magnitude_vector", magnitude_O});
    }
    parameters_.insert(parameters_.end(), leaves.begin(), leaves.end());
    auto lora =
        std::make_shared<LoraLinear>(a_RI, b_OR, magnitude_O, config_.scaling_of(module),
                                     Dropout{config_.dropout, crc32c(linear->name())}, factors);
    linear->set_adapter(lora, std::move(leaves));
    adapted_.push_back({linear, lora});
  }
  if (adapted_.empty()) refuse_no_module(config_, modules);

  std::vector<std::string> parameter_modules;
  for (const nn::NamedTensor& parameter : model.parameters()) {
    parameter_modules.push_back(names_.of(module_of(parameter.name)));
    if (!config_.saves_whole(parameter_modules.back())) continue;
    at::Tensor value = parameter.value;
    if (!value.is_floating_point())
      throw ConfigError(
          fmt::format("`{}` is quantised and cannot be trained whole", parameter.name),
          {.key = "modules_to_save",
           .hint = "list it in tuning.quantization.skip_modules, or leave it out"});
    value.requires_grad_();
    parameters_.push_back({kPeftPrefix + saved_names_.of(parameter.name), value});
  }
  check_names_match(config_.modules_to_save, parameter_modules, "modules_to_save",
                    LoraConfig::saves);
  std::vector<std::string> adapted;
  for (const Adapted& one : adapted_) adapted.push_back(names_.of(one.linear->name()));
  parameter_modules.push_back(names_.of(kHead));  // a tied head has no parameter of its own
  parameter_modules.insert(parameter_modules.end(), modules.begin(), modules.end());
  unmatched_ = config_.unmatched(parameter_modules, adapted);
  for (nn::Linear* linear : model.block_linears()) linear->weight_changed();
  model.head().weight_changed();
}

bool brings_embeddings(const fs::path& adapter_folder) {
  if (gguf::is_gguf_file(adapter_folder)) return false;
  const fs::path path = adapter_folder / "adapter_config.json";
  const LoraConfig config =
      LoraConfig::from_peft_json(io::JsonReader(io::read_json_file(path), path.string()));
  const io::SafetensorsFile file(adapter_folder / "adapter_model.safetensors");
  const ModuleNames names = names_in_file(file.tensors());
  for (const char* module : {kEmbedding, kHead})
    if (file.find(weight_of(module, names)) != nullptr && !config.saves_whole(names.of(module)) &&
        !config.ensure_weight_tying)
      return true;
  return false;
}

void LoraModel::take_embeddings(nn::CausalLm& model, const AdapterFile& file,
                                std::set<std::string>& expected) {
  const at::NoGradGuard no_grad;
  const std::string head = weight_of(kHead, names_);
  for (const nn::NamedTensor& parameter : model.parameters()) {
    const std::string name = kPeftPrefix + names_.of(parameter.name);
    const io::TensorView* const view = is_embedding(name, names_) ? file.find(name) : nullptr;
    if (view == nullptr || !expected.insert(name).second) continue;
    require_shape(*view, parameter.value, names_, file.path());
    at::Tensor value = parameter.value;
    value.copy_(device::copy_to_tensor(*view));
    brings_embeddings_ = true;
  }
  // PEFT writes a tied head too, as a copy.
  if (!model.head_is_tied() || file.find(head) == nullptr) return;
  const io::TensorView* const of_embedding = file.find(weight_of(kEmbedding, names_));
  if (of_embedding == nullptr || !device::copy_to_tensor(file.require_tensor(head))
                                      .equal(device::copy_to_tensor(*of_embedding)))
    throw DataError(
        "embedding and output head differ in the adapter, and are one tensor in this model",
        {.file = file.path().string(), .key = head, .hint = kUntieFirst});
  expected.insert(head);
}

std::string LoraModel::name_in_file(const nn::NamedTensor& parameter) const {
  const std::string saved = parameter.name.substr(std::string_view(kPeftPrefix).size());
  return kPeftPrefix + names_.of(saved_names_.own(saved));
}

void LoraModel::leave_unsaved_modules(const AdapterFile& file) {
  std::erase_if(parameters_, [&](const nn::NamedTensor& parameter) {
    const std::string name = name_in_file(parameter);
    const std::string module = module_of(name.substr(std::string_view(kPeftPrefix).size()));
    if (file.find(name) != nullptr || !config_.saves_whole(module) ||
        lies_at_a_dot(config_.modules_to_save, module))
      return false;
    at::Tensor value = parameter.value;
    value.requires_grad_(false);
    left_to_model_.push_back(module);
    return true;
  });
}

LoraModel LoraModel::create(nn::CausalLm& model, LoraConfig config, uint64_t seed) {
  LoraModel lora(std::move(config), names_in_whole(model.text_module()), model);
  lora.attach(model);
  if (!lora.unmatched_.empty()) {
    const LoraConfig::Unmatched& first = lora.unmatched_.front();
    std::vector<std::string> adapted;
    for (const Adapted& one : lora.adapted_) adapted.push_back(one.linear->name());
    if (first.key != std::string_view("exclude_modules"))
      refuse_unmatched(first, adapted, "no module that carries LoRA matches");
    std::vector<std::string> modules;
    for (nn::Linear* linear : model.block_linears()) modules.push_back(linear->name());
    refuse_unmatched(first, modules);
  }
  const at::NoGradGuard no_grad;
  for (Adapted& adapted : lora.adapted_) {
    at::Tensor a_RI = adapted.lora->a();
    a_RI.copy_(initial_a(a_RI.size(0), a_RI.size(1), seed, adapted.linear->name()));
  }
  return lora;
}

LoraModel LoraModel::load(nn::CausalLm& model, const fs::path& adapter) {
  const AdapterFile file = AdapterFile::open(adapter, model);
  const ModuleNames names = names_in_file(file.tensors());
  if (names != ModuleNames{} || !model.text_module().empty()) refuse_other_parts(file, names);
  LoraModel lora(file.config(), names, model);
  const LoraConfig& config = lora.config_;
  if (model.head_is_tied() && !config.ensure_weight_tying &&
      (config.saves_whole(names.of(kEmbedding)) || config.saves_whole(names.of(kHead))))
    throw DataError(
        "the adapter brings an embedding or output head of its own, and they are one tensor in "
        "this model",
        {.file = file.config_path().string(), .key = "modules_to_save", .hint = kUntieFirst});
  try {
    lora.attach(model);
  } catch (const ConfigError& error) {
    // The contradiction lies in the adapter's file, not in the user's settings. A GGUF file has no
    // settings but its tensors.
    throw DataError(error.what(), {.file = file.config_path().string(),
                                   .key = error.location().key,
                                   .hint = file.is_gguf() ? kOtherBase : error.location().hint});
  }
  std::erase_if(lora.unmatched_, [&](const LoraConfig::Unmatched& pattern) {
    return leaves_out_other_parts(pattern, names);
  });

  lora.leave_unsaved_modules(file);
  std::set<std::string> expected;
  const at::NoGradGuard no_grad;
  for (const nn::NamedTensor& parameter : lora.parameters_) {
    const io::TensorView& view = file.require_tensor(lora.name_in_file(parameter));
    expected.insert(view.name);
    require_shape(view, parameter.value, names, file.path());
    at::Tensor value = parameter.value;
    value.copy_(device::copy_to_tensor(view));
  }
  lora.take_embeddings(model, file, expected);
  for (const io::TensorView& view : file.tensors())
    if (!expected.contains(view.name))
      throw DataError(
          fmt::format("{} has no place in this model with this adapter_config.json", view.name),
          {.file = file.path().string(), .key = view.name, .hint = kOtherBase});
  model.head().weight_changed();
  for (nn::Linear* linear : model.block_linears()) linear->weight_changed();
  return lora;
}

void LoraModel::save(const fs::path& folder, const std::string& base_model) const {
  std::vector<io::TensorSource> sources;
  for (const nn::NamedTensor& parameter : parameters_)
    sources.push_back(device::tensor_source(parameter.name, parameter.value));
  io::write_safetensors(folder / "adapter_model.safetensors", std::move(sources));
  write_file_atomic(folder / "adapter_config.json", config_text(base_model));
}

LoraConfig LoraModel::spelled_out() const {
  LoraConfig config = config_;
  config.all_linear = false;
  config.target_pattern.clear();
  config.exclude_names.clear();
  config.exclude_pattern.clear();
  config.layers_to_transform.clear();
  config.target_names.clear();
  config.rank_pattern = {};
  config.alpha_pattern = {};
  for (const Adapted& adapted : adapted_) {
    const std::string module = names_.of(adapted.linear->name());
    const std::string saved = saved_names_.of(adapted.linear->name());
    config.target_names.push_back(saved);
    if (config_.rank_of(module) != config.r)
      config.rank_pattern.pairs.emplace_back(saved, config_.rank_of(module));
    if (config_.alpha_of(module) != config.alpha)
      config.alpha_pattern.pairs.emplace_back(saved, config_.alpha_of(module));
  }
  std::set<std::string> saved_whole;
  for (const nn::NamedTensor& parameter : parameters_)
    if (parameter.name.find(".lora_") == std::string::npos)
      saved_whole.insert(module_of(parameter.name.substr(std::string_view(kPeftPrefix).size())));
  config.modules_to_save.assign(saved_whole.begin(), saved_whole.end());
  return config;
}

std::string LoraModel::config_text(const std::string& base_model) const {
  const bool is_whole = names_ == ModuleNames{} && saved_names_ == ModuleNames{};
  LoraConfig recorded = is_whole ? config_ : spelled_out();
  recorded.base_model = base_model;
  if (!recorded.target_names.empty()) return recorded.to_peft_json(recorded.target_names);
  // Endings the user gave are kept: a shorter one could also catch modules that were left out.
  std::set<std::string> targets;
  for (const Adapted& adapted : adapted_) targets.insert(last_component(adapted.linear->name()));
  return recorded.to_peft_json({targets.begin(), targets.end()});
}

void LoraModel::merge() {
  const at::NoGradGuard no_grad;
  for (Adapted& adapted : adapted_) {
    at::Tensor& weight = adapted.linear->weight();
    weight.copy_(adapted.lora->merged_weight(weight));
    adapted.linear->set_adapter(nullptr);
    adapted.linear->weight_changed();
  }
  adapted_.clear();
}

}  // namespace convoy::adapters
