// SPDX-License-Identifier: Apache-2.0
//
// Shows a GGUF file like a Hugging Face folder: the small files by their names, and the weights by
// transformers' names. To open a model in several files (NAME-00001-of-00003.gguf), name the first.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/config_text.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/core/io/safetensors.h"

namespace convoy::gguf {

class Model {
 public:
  explicit Model(const std::filesystem::path& path);  // throws DataError
  ~Model();

  // config.json, generation_config.json, tokenizer.json or tokenizer_config.json. Returns nullopt
  // for another name. Throws DataError.
  std::optional<std::string> text(const std::string& name) const;
  static std::vector<std::string> text_names();
  // The same for a file by its path. For the tokenizer's files it does not look at the weights.
  static std::optional<std::string> text_in(const std::filesystem::path& path,
                                            const std::string& name);

  // The tensors as transformers stores them. The type is fp32 where the file has codes or adds 1 to
  // norms, else the file's float type.
  const std::vector<io::TensorView>& tensors() const { return tensors_; }
  std::vector<std::filesystem::path> files() const;
  const File& first() const { return *files_.front(); }
  const Family& family() const { return *family_; }
  std::vector<std::string> notices() const;

 private:
  struct Values;
  void open_others();
  void list_tensors();
  void add_tensor(const File& file, const TensorPlace& place, const std::string& own,
                  const Sizes& sizes);
  static void order_value_heads(const File& file, const ValueHeadPart& part,
                                const ValueHeads& heads, Values& values);
  const TensorPlace* find(const std::string& name) const;
  std::vector<float> read(const std::string& name) const;

  std::vector<std::unique_ptr<File>> files_;
  const Family* family_ = nullptr;
  std::vector<std::unique_ptr<Values>> values_;
  std::vector<io::TensorView> tensors_;
};

}  // namespace convoy::gguf
