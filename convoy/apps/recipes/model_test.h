// SPDX-License-Identifier: Apache-2.0
//
// Writes the tiny Qwen2 of tests/golden/train as a model folder, for tests of recipes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::testing {

using Tensors = std::map<std::string, at::Tensor>;

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) / "tests/golden";
}

inline Tensors read_tensors(const std::filesystem::path& file) {
  Tensors tensors;
  const io::SafetensorsFile stored(file);
  for (const io::TensorView& view : stored.tensors())
    tensors[view.name] = device::copy_to_tensor(view);
  return tensors;
}

inline void write_tensors(const std::filesystem::path& file, const Tensors& tensors) {
  std::vector<io::TensorSource> sources;
  for (const auto& [name, value] : tensors) sources.push_back(device::tensor_source(name, value));
  io::write_safetensors(file, std::move(sources));
}

// Copies a model and its tokenizer into `folder`.
inline void make_model(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  for (const char* source : {"train/tokenizer", "train/qwen2"})
    for (const fs::directory_entry& entry : fs::directory_iterator(golden_folder() / source))
      if (entry.is_regular_file()) fs::copy_file(entry.path(), folder / entry.path().filename());
}

// Writes the tiny Gemma 3 of tests/golden/train as the text part of a multimodal checkpoint.
inline void make_nested_model(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  for (const fs::directory_entry& entry :
       fs::directory_iterator(golden_folder() / "train/tokenizer"))
    fs::copy_file(entry.path(), folder / entry.path().filename());
  io::Json text = io::read_json_file(golden_folder() / "train/gemma3/config.json");
  text.erase("architectures");
  const io::Json config = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                           {"dtype", "float32"},
                           {"model_type", "gemma3"},
                           {"text_config", text},
                           {"vision_config", {{"hidden_size", 3}}}};
  write_file_atomic(folder / "config.json", config.dump());
  write_file_atomic(folder / "preprocessor_config.json", R"({"image_seq_length": 4})");
  Tensors tensors;
  for (const auto& [name, value] : read_tensors(golden_folder() / "train/gemma3/model.safetensors"))
    tensors["language_model." + name] = value;
  tensors["vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight"] =
      at::arange(9).view({3, 3}).to(at::kBFloat16);
  tensors["multi_modal_projector.mm_soft_emb_norm.weight"] = at::full({3}, 0.5);
  write_tensors(folder / "model.safetensors", tensors);
}

}  // namespace convoy::testing
