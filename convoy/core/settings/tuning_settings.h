// SPDX-License-Identifier: Apache-2.0
//
// The model, and which of its parameters train.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/quantization_settings.h"

namespace convoy::settings {

using config::NameList;

struct ModelSettings {
  std::string name;  // folder in Hugging Face layout, or hub id in the local hub cache
  std::string revision = "main";
  int64_t max_seq_len = 512;
  std::string dtype = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name,
          "model folder in Hugging Face layout, GGUF file, or hub id found in the local hub cache")
        .winning_alias("local_dir");
    visit("revision", revision, "hub revision looked up in the cache");
    visit("max_seq_len", max_seq_len, "longest row in tokens; longer rows follow data.truncation")
        .at_least(2);
    visit("dtype", dtype, "compute type of the weights; auto = as train.bf16 says")
        .one_of({"auto", "fp32", "bf16"})
        .alias("bnb_4bit_compute_dtype")
        .alias_at_root("tuning.bnb_4bit_compute_dtype")
        .alias_at_root("tuning.quantization.bnb_4bit_compute_dtype");
  }
};

struct LoraSettings {
  int64_t r = 32;
  double alpha = 64;
  double dropout = 0.05;
  NameList target_modules{{"auto"}};
  NameList exclude_modules;
  config::OrderedMap<int64_t> rank_pattern;
  config::OrderedMap<double> alpha_pattern;
  std::vector<int64_t> layers_to_transform;
  NameList modules_to_save;
  bool use_rslora = false;
  bool use_dora = false;
  double loraplus_lr_ratio = 0;
  std::string adapter;  // start from this PEFT adapter folder

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("r", r, "rank").at_least(1);
    visit("alpha", alpha, "scaling numerator: alpha/r, or alpha/sqrt(r) with use_rslora")
        .above(0)
        .alias("lora_alpha");
    visit("dropout", dropout, "dropout before A").at_least(0).at_most(0.99).alias("lora_dropout");
    visit("target_modules", target_modules,
          "auto or all-linear (q,k,v,o,gate,up,down projections), a list of name endings, or one "
          "regular expression");
    visit("exclude_modules", exclude_modules,
          "never adapted: a list of name endings, or one regular expression");
    visit("rank_pattern", rank_pattern,
          "rank by module-name pattern, as in PEFT: the first that matches a module counts");
    visit("alpha_pattern", alpha_pattern, "alpha by module-name pattern, in the same way");
    visit("layers_to_transform", layers_to_transform,
          "adapt only these layers, counted from 0, as in PEFT; empty = all");
    visit("modules_to_save", modules_to_save,
          "modules trained whole and stored with the adapter: all whose names end so, as in PEFT");
    visit("use_rslora", use_rslora, "rank-stabilised scaling (arXiv 2312.03732)");
    visit("use_dora", use_dora, "weight-decomposed adapters (arXiv 2402.09353)");
    visit("loraplus_lr_ratio", loraplus_lr_ratio,
          "LoRA+ (arXiv 2402.12354): B and vectors learn this many times as fast as A; 0 = off")
        .at_least(0)
        .alias_at_root("train.loraplus_lr_ratio")
        .alias_at_root("loraplus_lr_ratio");
    visit("adapter", adapter, "existing PEFT adapter folder to continue from");
  }
};

struct TuningSettings {
  std::string mode = "lora";
  std::string backend = "native";
  LoraSettings lora;
  QuantizationSettings quantization;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("mode", mode, "which parameters train; qlora: adapters over weights in 4 bits")
        .one_of({"lora", "qlora", "full"});
    visit("backend", backend, "recorded in checkpoints; one native engine computes for all of them")
        .one_of({"native", "bnb", "unsloth"});
    visit("lora", lora, "low-rank adapters");
    visit("quantization", quantization, "quantisation of frozen weights");
  }
};

}  // namespace convoy::settings
