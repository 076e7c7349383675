// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/merge_adapter.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/compared_loss.h"
#include "convoy/apps/recipes/model_files/output_place.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"

namespace convoy::recipes {
namespace {

// Relative error above which quantised weights belong to another model. Quantising 16-bit weights
// causes 0.09 for nf4 and 0.12 for fp4.
constexpr double kMostError = 0.25;

// "mixed" when the weights are stored in several types.
std::string common_name(const std::map<std::string, at::ScalarType>& dtypes) {
  const at::ScalarType first = dtypes.begin()->second;
  for (const auto& [name, dtype] : dtypes)
    if (dtype != first) return "mixed";
  return device::dtype_name(first);
}

// "in bf16, 16 bits each".
std::string width_text(const std::string& dtype) {
  if (dtype == "mixed") return "in several types";
  return fmt::format("in {}, {} bits each", dtype, dtype == "fp32" ? 32 : 16);
}

bool is_bitsandbytes(nn::CausalLm& model) {
  for (const nn::Linear* linear : model.block_linears())
    if (linear->is_bitsandbytes()) return true;
  return false;
}

void require_output(const settings::MergeFlags& flags) {
  if (flags.output.empty())
    throw ConfigError("wanted --output FOLDER",
                      {.key = "output", .hint = "such as --output merged"});
  require_new_folder(flags.output);
}

// "full" or "dequantized".
std::string chosen_base(const settings::MergeFlags& flags, bool coded) {
  if (!coded && flags.base == "dequantized")
    throw ConfigError(
        "--base dequantized applies only to a quantised model, and these weights are not quantised",
        {.key = "base", .hint = "add --quantization nf4, or leave it out"});
  if (!coded && !flags.base_model.empty())
    throw ConfigError(
        "--base-model applies only to a quantised model, and this one is not quantised",
        {.key = "base_model", .hint = "leave it out"});
  if (coded && flags.base == "auto")
    throw ConfigError(
        "the base is quantised. Merging into its dequantised weights keeps the trained model; "
        "merging into the 16-bit weights removes the quantisation error, to which the adapter has "
        "adapted",
        {.key = "base", .hint = "choose --base dequantized, or --base full"});
  if (flags.base == "dequantized" && !flags.base_model.empty())
    throw ConfigError("--base-model has no effect with --base dequantized",
                      {.key = "base_model", .hint = "leave one of them out"});
  return coded ? flags.base : "full";
}

double relative_error(const at::Tensor& values, const at::Tensor& wanted) {
  const double size = at::linalg_vector_norm(wanted).item<double>();
  return size == 0 ? 0 : at::linalg_vector_norm(values - wanted).item<double>() / size;
}

// Throws DataError when the quantised weights were made from other weights than `full`.
void require_same_weights(nn::CausalLm& coded, nn::CausalLm& full, const std::string& place) {
  std::vector<nn::Linear*> wanted = full.block_linears(), found = coded.block_linears();
  const at::NoGradGuard no_grad;
  for (size_t at = 0; at < found.size(); ++at) {
    if (!found[at]->is_bitsandbytes()) continue;
    const bool same_shape =
        at < wanted.size() && wanted[at]->weight().sizes() == found[at]->weight().sizes();
    const double error = same_shape ? relative_error(found[at]->values(), wanted[at]->values()) : 0;
    if (same_shape && error < kMostError) continue;
    throw DataError(
        same_shape
            ? fmt::format(
                  "{} differs from the quantised weight by {:.0f} %, where rounding explains 12 %",
                  found[at]->name(), 100 * error)
            : fmt::format("{} has another shape than the quantised weight", found[at]->name()),
        {.file = place, .hint = "give the model from which the quantised one was made"});
  }
}

class Merging {
 public:
  Merging(const settings::ModelSourceFlags& model, const settings::MergeFlags& flags,
          at::Device device, const Log& log)
      : model_(model), flags_(flags), device_(device), log_(log) {}

  void run();

 private:
  LoadedModel load(const std::string& name, const std::string& revision,
                   const models::WeightCoding& coding, const Log& log) const {
    return load_model({.name = name,
                       .revision = revision,
                       .adapter = model_.adapter,
                       .dtype = "fp32",
                       .template_path = "",
                       .device = device_,
                       .coding = coding},
                      log);
  }
  LoadedModel full_base(nn::CausalLm& served) const;
  std::string store(LoadedModel& merged) const;
  double loss_of_output() const;

  const settings::ModelSourceFlags& model_;
  const settings::MergeFlags& flags_;
  at::Device device_;
  const Log& log_;
  const Log quiet_ = Log(LogLevel::Quiet);  // for models whose load was logged before
  data::TokenDataset rows_;
};

LoadedModel Merging::full_base(nn::CausalLm& served) const {
  const bool has_own = !flags_.base_model.empty();
  LoadedModel full = load(has_own ? flags_.base_model : model_.model,
                          has_own ? "main" : model_.revision, {}, quiet_);
  const std::string place = full.folder.path().string();
  if (is_bitsandbytes(*full.model))
    throw ConfigError("--base full needs weights in 16 bits, and these are quantised",
                      {.file = place,
                       .key = "base_model",
                       .hint = "--base-model FOLDER of the model that was quantised"});
  require_same_weights(served, *full.model, place);
  return full;
}

// Returns the name of the stored type.
std::string Merging::store(LoadedModel& merged) const {
  merged.lora->merge();
  models::ExportConfig stored{.extent = models::extent_of(flags_.text_only),
                              .ends = {.ids = adapter_end_ids(model_.adapter, merged.tokenizer)},
                              .chat_template = merged.given_template};
  if (flags_.dtype == "auto")
    stored.own_dtypes = models::stored_dtypes(merged.folder);
  else
    stored.dtype = device::parse_dtype(flags_.dtype);
  models::export_model(*merged.model, merged.folder, flags_.output, stored);
  return flags_.dtype == "auto" ? common_name(stored.own_dtypes) : flags_.dtype;
}

double Merging::loss_of_output() const {
  const LoadedModel written =
      load_model({.name = flags_.output, .dtype = "fp32", .device = device_}, quiet_);
  return mean_loss(*written.model, rows_);
}

void Merging::run() {
  std::optional<LoadedModel> served =
      load(model_.model, model_.revision,
           weight_coding(flags_.held.quantization, flags_.held.double_quant), log_);
  const bool coded = is_bitsandbytes(*served->model);
  const std::string base = chosen_base(flags_, coded);
  const std::string held = coding_text(*served->model);
  rows_ = compared_rows(*served, flags_.data, log_);
  const double before = mean_loss(*served->model, rows_);
  if (coded && base == "full")
    served = full_base(*served->model);
  else
    for (nn::Linear* linear : served->model->block_linears()) linear->decode();
  const std::string width = common_name(models::stored_dtypes(served->folder));
  log_.info(fmt::format("merging into {}: {}{}", served->folder.path().string(),
                        coded && base == "dequantized"
                            ? fmt::format("weights that {} stands for, of a model ", held)
                            : "weights ",
                        width_text(width)));
  const std::string dtype = store(*served);
  served.reset();
  const double after = loss_of_output();
  const std::string where = flags_.data.empty() ? "a built-in text" : flags_.data;
  const nlohmann::ordered_json record = {
      {"base_model", flags_.base_model.empty() ? model_.model : flags_.base_model},
      {"base_dtype", width},
      {"dtype", dtype},
      {"merged_from_adapters", {model_.adapter}},
      {"merge_base", base},
      {"quantization", held},
      {"loss", {{"rows", where}, {"before", before}, {"after", after}}}};
  write_file_atomic(std::filesystem::path(flags_.output) / "convoy_merge.json",
                    record.dump(2) + "\n");
  log_.info(fmt::format("loss on {}: {:.4f} before, {:.4f} merged", where, before, after));
  log_.info(fmt::format("merged model written to {}, stored in {}", flags_.output,
                        dtype == "mixed" ? "the types of the base" : dtype));
}

}  // namespace

void merge_adapter(const settings::ModelSourceFlags& model, const settings::MergeFlags& flags,
                   const settings::RankFlags& ranks, const Log& log) {
  if (model.adapter.empty())
    throw ConfigError(
        "wanted --adapter FOLDER",
        {.key = "adapter",
         .hint = "convoy models merge --model FOLDER --adapter FOLDER --output FOLDER"});
  require_output(flags);
  Merging(model, flags, device::take_rank_device(ranks.devices, 0).device, log).run();
}

}  // namespace convoy::recipes
