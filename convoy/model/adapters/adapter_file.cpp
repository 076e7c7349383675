// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/adapter_file.h"

#include <algorithm>
#include <span>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/json_text.h"
#include "convoy/model/adapters/gguf_lora.h"
#include "convoy/model/nn/kv_cache.h"

namespace convoy::adapters {
namespace {

namespace fs = std::filesystem;

io::TensorView view_of(const nn::NamedTensor& tensor) {
  return {.name = tensor.name,
          .dtype = io::Dtype::F32,
          .shape = tensor.value.sizes().vec(),
          .bytes = std::as_bytes(std::span<const float>(
              tensor.value.const_data_ptr<float>(), static_cast<size_t>(tensor.value.numel())))};
}

}  // namespace

void AdapterFile::require(const fs::path& adapter) {
  if (gguf::is_gguf_file(adapter)) return require_gguf_lora(adapter);
  if (fs::is_regular_file(adapter))
    throw DataError(
        "wanted the folder of a PEFT adapter or a LoRA file in GGUF, found another file",
        {.file = adapter.string(),
         .hint = "name the folder that holds adapter_config.json, or FILE.gguf"});
  if (!fs::is_regular_file(adapter / "adapter_config.json"))
    throw DataError(
        "the folder holds no adapter_config.json: it is not a PEFT adapter",
        {.file = adapter.string(),
         .hint = "name the folder that holds adapter_config.json, such as runs/NAME/adapter"});
}

AdapterFile AdapterFile::open(const fs::path& adapter, nn::CausalLm& model) {
  require(adapter);
  AdapterFile file;
  if (gguf::is_gguf_file(adapter)) {
    GgufLora lora = read_gguf_lora(adapter, model.family(), model.kv_geometry().head_dim);
    file.config_ = std::move(lora.config);
    file.config_path_ = file.path_ = adapter;
    file.values_ = std::move(lora.tensors);
    for (const nn::NamedTensor& tensor : file.values_) file.views_.push_back(view_of(tensor));
    return file;
  }
  file.config_path_ = adapter / "adapter_config.json";
  file.config_ = LoraConfig::from_peft_json(
      io::JsonReader(io::read_json_file(file.config_path_), file.config_path_.string()));
  file.path_ = adapter / "adapter_model.safetensors";
  if (!fs::exists(file.path_))
    throw DataError(
        "the adapter has no adapter_model.safetensors",
        {.file = adapter.string(),
         .hint = "save it again with safe_serialization; pickled .bin files are not read"});
  file.file_.emplace(file.path_);
  return file;
}

const io::TensorView* AdapterFile::find(const std::string& name) const {
  if (file_) return file_->find(name);
  const auto found = std::ranges::find(views_, name, &io::TensorView::name);
  return found == views_.end() ? nullptr : &*found;
}

const io::TensorView& AdapterFile::require_tensor(const std::string& name) const {
  if (file_) return file_->require(name);
  const io::TensorView* const view = find(name);
  CONVOY_INVARIANT(view != nullptr, "{} has no {}, which its configuration names", path_.string(),
                   name);
  return *view;
}

}  // namespace convoy::adapters
