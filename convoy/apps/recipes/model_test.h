// SPDX-License-Identifier: Apache-2.0
//
// The tiny Qwen2 of tests/golden/train as a model folder, for tests of recipes.
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

// Copies model and tokenizer into `folder`.
inline void make_model(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  fs::create_directories(folder);
  for (const char* source : {"train/tokenizer", "train/qwen2"})
    for (const fs::directory_entry& entry : fs::directory_iterator(golden_folder() / source))
      if (entry.is_regular_file()) fs::copy_file(entry.path(), folder / entry.path().filename());
}

}  // namespace convoy::testing
