// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/quantization_config.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::models {

using kernels::CodeType;

namespace {

constexpr const char* kInstead =
    "take the model's folder in fp32, bf16 or fp16, which can be quantised while it is loaded";

}  // namespace

std::optional<WeightCoding> read_quantization_config(const io::JsonReader& config) {
  const std::optional<io::JsonReader> found = config.optional_object("quantization_config");
  if (!found) return {};
  const std::string method = found->string_or("quant_method", "bitsandbytes");
  if (method != "bitsandbytes")
    found->fail_unsupported(
        "quant_method",
        fmt::format("`{}` is not supported; bitsandbytes is (nf4, fp4, int8)", method), kInstead);
  WeightCoding coding{.format = kernels::BitsandbytesFormat{}};
  coding.skip_modules = found->strings_or_empty("llm_int8_skip_modules");
  if (found->bool_or("load_in_8bit", false)) {
    coding.format->type = CodeType::Int8;
    return coding;
  }
  if (!found->bool_or("load_in_4bit", false))
    found->fail("load_in_4bit", "must be true where load_in_8bit is not");
  const std::string type = found->string_or("bnb_4bit_quant_type", "fp4");
  if (type != "nf4" && type != "fp4")
    found->fail_unsupported("bnb_4bit_quant_type",
                            fmt::format("`{}` is not supported; nf4 and fp4 are", type), kInstead);
  coding.format->type = type == "nf4" ? CodeType::Nf4 : CodeType::Fp4;
  coding.format->nested = found->bool_or("bnb_4bit_use_double_quant", false);
  return coding;
}

nlohmann::json quantization_config_json(const WeightCoding& coding) {
  const bool eight = coding.format->type == CodeType::Int8;
  nlohmann::json json = {
      {"_load_in_4bit", !eight},
      {"_load_in_8bit", eight},
      {"bnb_4bit_compute_dtype", "float32"},
      {"bnb_4bit_quant_storage", "uint8"},
      {"bnb_4bit_quant_type", eight ? "fp4" : kernels::code_type_name(coding.format->type)},
      {"bnb_4bit_use_double_quant", coding.format->nested},
      {"llm_int8_enable_fp32_cpu_offload", false},
      {"llm_int8_has_fp16_weight", false},
      {"llm_int8_skip_modules", nullptr},
      {"llm_int8_threshold", 6.0},
      {"load_in_4bit", !eight},
      {"load_in_8bit", eight},
      {"quant_method", "bitsandbytes"}};
  if (!coding.skip_modules.empty()) json["llm_int8_skip_modules"] = coding.skip_modules;
  return json;
}

bool is_skipped(const WeightCoding& coding, const std::string& weight) {
  const std::string module = weight.substr(0, weight.rfind('.'));
  return std::any_of(
      coding.skip_modules.begin(), coding.skip_modules.end(), [&](const std::string& name) {
        return !name.empty() && (module.starts_with(name) || module.ends_with(name) ||
                                 module.find("." + name + ".") != std::string::npos);
      });
}

}  // namespace convoy::models
