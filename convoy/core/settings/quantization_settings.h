// SPDX-License-Identifier: Apache-2.0
//
// Quantisation of frozen weights: for training, and for commands that load or write a model.
// Plain data: no LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "convoy/core/config/field.h"

namespace convoy::settings {

using config::NameList;

struct QuantizationSettings {
  std::string type = "auto";
  bool load_in_4bit = false;
  bool load_in_8bit = false;
  bool double_quant = true;
  int64_t block_size = 64;
  NameList skip_modules;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("type", type,
          "format of the linear layers of blocks; auto = nf4 under tuning.mode qlora, else none")
        .one_of({"auto", "none", "nf4", "fp4", "int8"})
        .alias("bnb_4bit_quant_type")
        .alias_at_root("tuning.bnb_4bit_quant_type")
        .alias_at_root("model.bnb_4bit_quant_type");
    visit("load_in_4bit", load_in_4bit,
          "as in Hugging Face's files: type nf4, unless that says fp4")
        .alias_at_root("tuning.load_in_4bit")
        .alias_at_root("model.load_in_4bit");
    visit("load_in_8bit", load_in_8bit, "as in Hugging Face's files: type int8")
        .alias_at_root("tuning.load_in_8bit")
        .alias_at_root("model.load_in_8bit");
    visit("double_quant", double_quant, "nf4 and fp4: also store the block scales in 8 bits")
        .alias("bnb_4bit_use_double_quant")
        .alias_at_root("tuning.bnb_4bit_use_double_quant")
        .alias_at_root("model.bnb_4bit_use_double_quant");
    visit("block_size", block_size,
          "nf4 and fp4: weights that share a scale; a power of two from 32 to 4096")
        .at_least(32)
        .at_most(4096);
    visit("skip_modules", skip_modules,
          "linear layers that are not quantised, by name, prefix or suffix")
        .alias("llm_int8_skip_modules")
        .alias_at_root("tuning.llm_int8_skip_modules")
        .alias_at_root("model.llm_int8_skip_modules");
  }

  // The resulting type: none, nf4, fp4 or int8.
  std::string format(bool is_qlora) const;
  // A contradiction between the settings, with the key that causes it; empty when there is none.
  struct Problem {
    std::string key;
    std::string sentence;
    std::string hint;
  };
  std::optional<Problem> problem(const std::string& mode) const;
};

// Flags of commands that load a model.
struct QuantizationFlags {
  std::string quantization = "auto";
  bool double_quant = false;
  // No flags: a training configuration sets them.
  int64_t block_size = 64;
  NameList skip_modules = {};

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("quantization", quantization,
          "quantise linear layers while loading, in bitsandbytes' format; auto = as in the config "
          "of eval, else as stored in the folder")
        .one_of({"auto", "none", "nf4", "fp4", "int8"});
    visit("double_quant", double_quant, "nf4 and fp4: also store the block scales in 8 bits");
  }
};

struct QuantizeFlags {
  std::string model;
  std::string tensors;
  std::string revision = "main";
  std::string output;
  std::string quantization = "nf4";
  bool double_quant = false;
  int64_t block_size = 64;
  NameList skip_modules;
  bool dequantize = false;
  bool text_only = false;
  std::string dtype = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model,
          "model folder in Hugging Face layout, GGUF file, or hub id found in the local hub cache");
    visit("tensors", tensors, "a .safetensors file instead: every tensor of floats in it");
    visit("revision", revision, "hub revision looked up in the cache");
    visit("output", output, "folder to write; with --tensors the file")
        .alias("output_dir")
        .alias("o");
    visit("quantization", quantization, "format").one_of({"nf4", "fp4", "int8"});
    visit("double_quant", double_quant, "nf4 and fp4: also store the block scales in 8 bits");
    visit("block_size", block_size, "nf4 and fp4: weights that share a scale; a power of two")
        .at_least(32)
        .at_most(4096);
    visit("skip_modules", skip_modules,
          "linear layers that are not quantised, by name, prefix or suffix");
    visit("dequantize", dequantize, "dequantise instead");
    visit("text_only", text_only,
          "of a checkpoint that also sees: write the text model alone, as a model of its own");
    visit("dtype", dtype, "with --dequantize: stored type; auto = the weight's original type")
        .one_of({"auto", "fp32", "bf16", "fp16"});
  }
};

}  // namespace convoy::settings
