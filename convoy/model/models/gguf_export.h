// SPDX-License-Identifier: Apache-2.0
//
// Writes a model as one GGUF file, which llama.cpp, Ollama and LM Studio load.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/file_type.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::models {

// Reads elements of a weight from `begin` on, in row-major order, into `out`, which is flat and
// fp32. `name`: as architecture::declare_parameters gives it.
using ReadElements =
    std::function<void(const std::string& name, int64_t begin, const at::Tensor& out)>;

struct GgufExport {
  gguf::FileType type;
  std::vector<int32_t> ends = {};  // end ids that are listed before the source's
  std::string name = {};           // general.name
  std::string chat_template = {};  // its text; empty: none
  std::function<void(int64_t done, int64_t total)> advance = [](int64_t, int64_t) {};
  int64_t piece_values = int64_t{1} << 22;  // values in memory at once, in whole heads of rows
};

// `source` gives configuration and tokenizer. Returns what people have to know, one sentence each.
// Throws DataError with the reason where llama.cpp computes no such model or cuts texts in another
// way; NumericError where a type cannot hold a value; IoError.
std::vector<std::string> export_gguf(const io::ModelFolder& source, const ReadElements& read,
                                     const std::filesystem::path& path, const GgufExport& options);

// Rows of queries or keys as a GGUF file orders them.
at::Tensor rows_in_file_order(const at::Tensor& rows, int64_t head_dim);

// The ids at which texts end: `first`, then the others that the source's files name.
std::vector<int32_t> ends_in_order(const io::ModelFolder& source, std::vector<int32_t> first);

// Why llama.cpp would compute something else than this model; empty when it does not.
std::string gguf_refusal(const architecture::DecoderSpec& spec);

}  // namespace convoy::models
