// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy models export` and `convoy models convert`, shown by the front and read by the
// worker. Plain data.
#pragma once

#include <string>

namespace convoy::settings {

struct ModelExportFlags {
  std::string model;
  std::string adapter;
  std::string revision = "main";
  std::string output;
  std::string format = "gguf";
  std::string type = "f16";
  bool adapter_only = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model,
          "the model, where it is not the first word: a folder, a GGUF file, or a "
          "hub id found in the local hub cache");
    visit("adapter", adapter,
          "folder of a PEFT adapter, or a LoRA file in GGUF: it is merged into the model");
    visit("revision", revision, "hub revision looked up in the cache");
    visit("output", output,
          "file to write, for ollama the folder; empty = the model's name and the type")
        .alias("o");
    visit("format", format, "gguf: one file; ollama: a folder with that file and its Modelfile")
        .one_of({"gguf", "ollama"});
    visit("type", type, "type of most weights, by llama.cpp's names and rules")
        .one_of({"f32", "f16", "bf16", "q8_0", "q6_k", "q5_k_m", "q5_k_s", "q5_1", "q5_0", "q4_k_m",
                 "q4_k_s", "q4_1", "q4_0"})
        .alias("outtype");
    visit("adapter_only", adapter_only,
          "write the adapter alone, as a LoRA file for the GGUF file of its model; f32, f16 or "
          "bf16");
  }
};

struct ModelConvertFlags {
  std::string base;
  std::string dtype = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("base", base,
          "for a LoRA file: the model to which it belongs; a PEFT adapter is written");
    visit("dtype", dtype, "stored type; auto = as in the file, and fp32 for codes of few bits")
        .one_of({"auto", "fp32", "bf16", "fp16"});
  }
};

}  // namespace convoy::settings
