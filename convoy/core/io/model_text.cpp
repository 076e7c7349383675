// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/model_text.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/model.h"

namespace convoy::io {

namespace fs = std::filesystem;

std::optional<std::string> find_model_text(const fs::path& model, const std::string& name,
                                           int64_t max_bytes) {
  if (gguf::is_gguf_file(model)) {
    std::optional<std::string> text = gguf::Model::text_in(model, name);
    if (text && std::ssize(*text) > max_bytes)
      throw DataError(fmt::format("the {} of this file has {} bytes, more than {}", name,
                                  text->size(), max_bytes),
                      {.file = model.string(), .hint = "take the model in Hugging Face layout"});
    return text;
  }
  const fs::path file = model / name;
  if (!fs::exists(file)) return std::nullopt;
  return read_file(file, max_bytes);
}

fs::path place_of_model_text(const fs::path& model, const std::string& name) {
  return gguf::is_gguf_file(model) ? model : model / name;
}

}  // namespace convoy::io
