// SPDX-License-Identifier: Apache-2.0
//
// Chooses how a GGUF file is written: the type of each of its tensors by llama.cpp's rules
// (convert_hf_to_gguf.py for floats and q8_0, llama_tensor_get_type of llama-quant.cpp for the
// other types), so that a file has the tensor types that llama.cpp would choose.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/gguf/tensor_type.h"

namespace convoy::gguf {

struct FileType {
  std::string_view name;  // "q4_k_m"
  int64_t number;         // value of general.file_type
  TensorType usual;       // type of most weights
};

// Throws ConfigError for a name that is none of file_type_names().
const FileType& file_type(std::string_view name);
std::vector<std::string> file_type_names();

// The properties of the model that decide the type.
struct TypeChoice {
  int64_t num_layers = 0;
  bool tied_head = false;
  bool shares_kv_heads = false;
};

struct ChosenType {
  TensorType type = TensorType::F32;
  // The type by llama.cpp's rule. `type` differs from it when the row size is no multiple of the
  // block size of `wanted`: it is then the next type that fits.
  TensorType wanted = TensorType::F32;
};

// `name`: the tensor's name in the file ("blk.3.attn_v.weight").
ChosenType choose_type(const FileType& file, const TypeChoice& model, const std::string& name,
                       const std::vector<int64_t>& shape);

}  // namespace convoy::gguf
