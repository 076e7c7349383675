// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/model_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_memory.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/core/settings/strategies.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/text/tokenizer_settings.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/architecture/families/missing_forms.h"
#include "convoy/model/architecture/spec_forms.h"
#include "convoy/model/models/checkpoint_rest.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/models/stored_codes.h"
#include "convoy/model/models/weights.h"
#include "convoy/model/sizing/memory_estimate.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::array kReadFiles = {"config.json",
                                   "generation_config.json",
                                   "tokenizer.json",
                                   "tokenizer_config.json",
                                   "chat_template.jinja",
                                   "model.safetensors",
                                   "model.safetensors.index.json"};

ordered_json id_or_null(const text::Tokenizer& tokenizer, std::optional<int32_t> id) {
  if (!id) return nullptr;
  return {{"id", *id}, {"token", tokenizer.piece(*id)}};
}

ordered_json conversation(bool with_system) {
  ordered_json messages = ordered_json::array();
  if (with_system) messages.push_back({{"role", "system"}, {"content", "Be brief."}});
  messages.push_back({{"role", "user"}, {"content", "1 + 1 = ?"}});
  messages.push_back({{"role", "assistant"}, {"content", "2"}});
  return messages;
}

class Check {
 public:
  Check(const std::string& name, const settings::ModelCheckFlags& flags)
      : flags_(flags), folder_(io::ModelFolder::open(name, flags.revision)) {
    check_.notices = folder_.notices();
  }

  ModelCheck run() {
    check_.facts["folder"] = folder_.path().string();
    check_.facts["commit"] =
        folder_.commit().empty() ? ordered_json() : ordered_json(folder_.commit());
    look_at_config();
    look_at_files();
    if (has_readable_weights_) look_at_weights();
    look_at_tokenizer();
    look_at_template();
    if (spec_) check_.facts["memory"] = memory_of_trainings();
    look_at_generation();
    check_.facts["usable"] = check_.refusals.empty();
    check_.facts["refusals"] = check_.refusals;
    check_.facts["notices"] = check_.notices;
    return std::move(check_);
  }

 private:
  // Calls `look`. Records an Error of it as a refusal and returns false.
  bool may(const std::function<void()>& look) {
    try {
      look();
      return true;
    } catch (const Error& error) {
      const std::string sentence = error.sentence();
      const auto& known = check_.refusals;
      if (std::find(known.begin(), known.end(), sentence) == known.end())
        check_.refusals.push_back(sentence);
      return false;
    }
  }

  void look_at_config() {
    const io::JsonReader& config = folder_.config();
    may([&] {
      const std::string type = config.string_or("model_type", "");
      check_.facts["model_type"] = type;
      if (const families::MissingType* const missing = families::find_missing_type(type))
        check_.facts["missing"] = {
            {"models", missing->models}, {"needs", missing->needs}, {"nearest", missing->nearest}};
    });
    const nlohmann::ordered_json* const quantization = config.find("quantization_config");
    check_.facts["quantization"] = quantization == nullptr ? ordered_json() : *quantization;
    may([&] {
      const families::Family& family = families::family_of(folder_);
      check_.facts["architecture"] = family.architecture;
      spec_ = family.read_spec(config);
    });
    if (!spec_) return;
    std::set<int64_t> windows;
    for (const architecture::LayerSpec& layer : spec_->layers)
      if (layer.sliding_window > 0) windows.insert(layer.sliding_window);
    check_.facts["family"] = spec_->family;
    check_.facts["forms"] = architecture::forms_of(*spec_);
    check_.facts["parameters"] = sizing::count_parameters(*spec_);
    check_.facts["layers"] = spec_->num_layers();
    check_.facts["hidden_size"] = spec_->hidden_size;
    check_.facts["vocab_size"] = spec_->vocab_size;
    check_.facts["context_tokens"] = spec_->max_positions;
    check_.facts["sliding_windows"] = windows;
    check_.facts["tied_head"] = spec_->tied_head;
  }

  void look_at_files() {
    std::vector<std::string> names;
    if (!folder_.is_gguf()) names.assign(kReadFiles.begin(), kReadFiles.end());
    std::vector<std::string> weights;
    has_readable_weights_ = may([&] { weights = folder_.weight_file_names(); });
    names.insert(names.end(), weights.begin(), weights.end());
    ordered_json files = ordered_json::array();
    std::set<std::string> listed;
    for (const std::string& name : names) {
      if (!listed.insert(name).second) continue;
      const bool is_weights = std::find(weights.begin(), weights.end(), name) != weights.end();
      ordered_json file = look_at_file(name, is_weights);
      // Leaves out missing files that are not required: one of the two ways to store weights is
      // enough, and templates may be in tokenizer_config.json.
      if (!file["bytes"].is_null() || is_weights || name == "tokenizer.json")
        files.push_back(std::move(file));
    }
    check_.facts["files"] = std::move(files);
    ordered_json unread = ordered_json::array();
    std::error_code ignored;
    if (folder_.is_gguf()) {
      check_.facts["files_not_read"] = std::move(unread);
      return;
    }
    std::set<std::string> others;
    for (const auto& entry : fs::directory_iterator(folder_.path(), ignored))
      others.insert(entry.path().filename().string());
    for (const std::string& name : others)
      if (!listed.contains(name)) unread.push_back(name);
    check_.facts["files_not_read"] = std::move(unread);
  }

  ordered_json look_at_file(const std::string& name, bool is_weights) {
    ordered_json file = {{"name", name}, {"bytes", nullptr}, {"state", "missing"}};
    const bool is_there = may([&] {
      const auto path = is_weights ? std::optional(folder_.require(name)) : folder_.find(name);
      if (!path) return;
      file["bytes"] = static_cast<int64_t>(fs::file_size(*path));
      file["state"] = "damaged";
      if (folder_.is_gguf())
        count_codes(gguf::File(*path));
      else if (name.ends_with(".safetensors"))
        count_tensors(io::SafetensorsFile(*path));
      file["state"] = "good";
    });
    if (!is_there) has_readable_weights_ = has_readable_weights_ && !is_weights;
    return file;
  }

  void count_tensors(const io::SafetensorsFile& file) {
    for (const io::TensorView& view : file.tensors()) {
      stored_elements_ += view.num_elements();
      stored_bytes_ += static_cast<int64_t>(view.bytes.size());
      ++tensors_by_dtype_[std::string(io::dtype_name(view.dtype))];
    }
  }

  void count_codes(const gguf::File& file) {
    for (const gguf::TensorPlace& place : file.tensors()) {
      stored_elements_ += place.num_rows() * place.row_values();
      stored_bytes_ += place.bytes;
      ++tensors_by_dtype_[std::string(gguf::info_of(place.type).name)];
    }
  }

  // Number of values that the files hold: for a quantised weight the number of its values, not of
  // its packed bytes.
  int64_t held_values() const {
    if (check_.facts.at("quantization").is_null()) return stored_elements_;
    const io::ModelWeights weights(folder_);
    const models::FindTensor find = [&](const std::string& name) { return weights.find(name); };
    int64_t values = stored_elements_;
    for (const std::string& name : weights.names()) {
      const auto codes = models::StoredCodes::find(name, find, folder_.path().string());
      if (!codes) continue;
      int64_t stands_for = 1;
      for (const int64_t size : codes->shape()) stands_for *= size;
      values += stands_for - weights.require(name).num_elements();
      for (const std::string& key : codes->keys()) values -= weights.require(key).num_elements();
    }
    return values;
  }

  void look_at_weights() {
    ordered_json dtypes = ordered_json::object();
    for (const auto& [dtype, count] : tensors_by_dtype_) dtypes[dtype] = count;
    int64_t held = stored_elements_;
    may([&] { held = held_values(); });
    check_.facts["weights"] = {{"elements", held},
                               {"bytes", stored_bytes_},
                               {"tensors_by_dtype", std::move(dtypes)},
                               {"fit_config", nullptr}};
    if (!spec_) return;
    const bool fit = may([&] {
      nn::DeferredValues values;
      models::declare_causal_lm(folder_, at::kFloat, at::kCPU, values);
    });
    check_.facts["weights"]["fit_config"] = fit;
    if (fit) look_at_other_parts();
  }

  void look_at_other_parts() {
    const models::CheckpointWeights weights = models::open_weights(folder_);
    const bool is_nested = models::holds_more_than_text(folder_);
    const auto count = is_nested ? std::ssize(weights.others()) : 0;
    check_.facts["weights"]["left_aside"] = count;
    if (count == 0) return;
    check_.notices.push_back(fmt::format(
        "only the language model is used: {} of other parts, such as {}, stay as they are when it "
        "is trained, merged or quantized, and are not in a GGUF file",
        counted(count, "tensor"), weights.others().front()->name));
  }

  void look_at_tokenizer() {
    ordered_json found;
    may([&] { tokenizer_ = text::Tokenizer::load(folder_.path()); });
    if (tokenizer_) {
      if (const std::string letters = tokenizer_->missing_letters(); !letters.empty())
        check_.notices.push_back(letters);
      const io::JsonReader file(
          io::parse_json(folder_.text("tokenizer.json").value(), "tokenizer.json"),
          "tokenizer.json");
      found = {{"kind", file.require_object("model").string_or("type", "")},
               {"vocab_size", tokenizer_->vocab_size()},
               {"bos", id_or_null(*tokenizer_, tokenizer_->bos_id())},
               {"eos", id_or_null(*tokenizer_, tokenizer_->eos_id())},
               {"pad", id_or_null(*tokenizer_, tokenizer_->pad_id())},
               {"adds_bos", tokenizer_->adds_bos()},
               {"adds_eos", tokenizer_->adds_eos()}};
      if (!tokenizer_->eos_id())
        check_.notices.push_back(
            "the tokenizer names no EOS: generation ends by the ids of generation_config.json, or "
            "at "
            "--max-new-tokens");
      if (spec_) may([&] { require_vocabulary(*tokenizer_, spec_->vocab_size, folder_); });
    }
    check_.facts["tokenizer"] = std::move(found);
  }

  void look_at_template() {
    std::optional<text::ChatTemplate> chat;
    ordered_json found;
    may([&] { chat = text::ChatTemplate::load(folder_.path(), flags_.template_path); });
    if (chat) {
      bool takes_system = true;
      try {
        chat->render(conversation(true), {}, false);
      } catch (const DataError&) {
        takes_system = false;
      }
      std::string policy;
      const bool renders = may([&] {
        chat->render(conversation(false), {}, true);
        if (!tokenizer_) return;
        const data::SampleEncoder encoder(*tokenizer_, &*chat, data::Supervision());
        policy = encoder.policy(
            {.kind = data::Sample::Kind::Chat, .messages = conversation(takes_system)});
      });
      found = {{"renders", renders},
               {"takes_system_turns", takes_system},
               {"generation_tags", chat->has_generation_tags()},
               {"training", policy.empty() ? ordered_json() : ordered_json(policy)}};
      if (!takes_system && renders)
        check_.notices.push_back("the chat template takes no system turns");
    } else {
      check_.notices.push_back(
          "there is no chat template: rows with `messages` need data.template_path");
    }
    check_.facts["chat_template"] = std::move(found);
  }

  void look_at_generation() {
    std::vector<int32_t> ends;
    may([&] { ends = families::end_token_ids(folder_); });
    const auto& config = folder_.generation_config();
    check_.facts["generation_config"] = config ? ordered_json(config->value()) : ordered_json();
    check_.facts["end_token_ids"] = ends;
    const std::optional<int32_t> eos = tokenizer_ ? tokenizer_->eos_id() : std::nullopt;
    if (eos && !ends.empty() && std::find(ends.begin(), ends.end(), *eos) == ends.end())
      check_.notices.push_back(
          fmt::format("the tokenizer's EOS is {}, config.json and generation_config.json end texts "
                      "at {}: generation ends at any of them",
                      *eos, fmt::join(ends, ", ")));
  }

  ordered_json memory_of_trainings() const {
    constexpr std::array kRanks = {1, 2, 4, 8};
    const int64_t here = memory_here();
    const bool is_shared = flags_.hardware == "cpu";  // by all ranks of the machine
    ordered_json rows = ordered_json::array();
    for (const char* mode : {"full", "lora", "qlora"}) {
      for (const char* dtype : {"fp32", "bf16"}) {
        ordered_json bytes = ordered_json::array();
        ordered_json fits = ordered_json::array();
        for (const int ranks : kRanks) {
          const int64_t of_rank = memory_of_rank(mode, dtype, ranks);
          bytes.push_back(of_rank);
          fits.push_back(here == 0 ? ordered_json()
                                   : ordered_json(of_rank * (is_shared ? ranks : 1) <= here));
        }
        rows.push_back({{"mode", mode},
                        {"dtype", dtype},
                        {"bytes_per_rank", std::move(bytes)},
                        {"fits_here", std::move(fits)}});
      }
    }
    return {{"hardware", flags_.hardware},
            {"here_bytes", here > 0 ? ordered_json(here) : ordered_json()},
            {"seq", flags_.seq},
            {"batch", flags_.batch},
            {"lora_rank", kLoraRank},
            {"strategy", sharing().strategy},
            {"ranks", kRanks},
            {"rows", std::move(rows)}};
  }

  // Memory that a training may use on this machine, in host memory or on a GPU. 0 = unknown.
  int64_t memory_here() const {
    if (flags_.memory_bytes > 0) return flags_.memory_bytes;
    if (flags_.hardware == "cpu") return usable_memory_bytes();
    try {
      return device::usable_rank_memory_bytes(device::take_rank_device("cuda", 0).device, 1);
    } catch (const Error&) {
      return 0;  // GPU memory was given for another machine
    }
  }

  int64_t memory_of_rank(const std::string& mode, const std::string& dtype, int ranks) const {
    return sizing::estimate_memory(*spec_,
                                   {.mode = mode,
                                    .dtype = dtype,
                                    .lora_rank = kLoraRank,
                                    .sharing = ranks == 1 ? sizing::StateSharing() : sharing(),
                                    .ranks = ranks,
                                    .batch_rows = flags_.batch,
                                    .row_tokens = flags_.seq,
                                    .hardware = flags_.hardware == "cpu" ? sizing::Hardware::Cpu
                                                                         : sizing::Hardware::Gpu})
        .total_bytes();
  }

  // The sharing of the strategy that shards most.
  static sizing::StateSharing sharing() {
    return sizing::sharing_of(settings::strategies_of_processes().back());
  }

  static constexpr int64_t kLoraRank = 16;

  const settings::ModelCheckFlags& flags_;
  io::ModelFolder folder_;
  ModelCheck check_;
  std::optional<architecture::DecoderSpec> spec_;
  std::optional<text::Tokenizer> tokenizer_;
  bool has_readable_weights_ = false;
  int64_t stored_elements_ = 0;
  int64_t stored_bytes_ = 0;
  std::map<std::string, int64_t> tensors_by_dtype_;
};

}  // namespace

ModelCheck check_model(const std::string& name, const settings::ModelCheckFlags& flags) {
  const std::optional<std::string> base = io::base_of_adapter_folder(name);
  if (!base) return Check(name, flags).run();
  ModelCheck check = Check(*base, flags).run();
  check.notices.push_back(
      fmt::format("{} is a PEFT adapter of {}: the base was checked", name, *base));
  check.facts["notices"] = check.notices;
  return check;
}

}  // namespace convoy::recipes
