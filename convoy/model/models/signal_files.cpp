// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/signal_files.h"

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using nn::ChannelPooling;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kBuffersFile = "buffers.safetensors";  // in a checkpoint

constexpr std::array<std::pair<const char*, ChannelPooling>, 4> kPoolings = {
    {{"flatten", ChannelPooling::Flatten},
     {"average", ChannelPooling::Average},
     {"first", ChannelPooling::First},
     {"joint", ChannelPooling::Joint}}};

bool is_of_encoder(const std::string& name) { return name.starts_with("encoder."); }

std::vector<fs::path> encoder_files(const fs::path& path) {
  if (fs::is_regular_file(path)) return {path};
  for (const fs::path& folder : {path, path / "model"}) {
    if (!fs::is_regular_file(folder / kModelFile)) continue;
    std::vector<fs::path> files = {folder / kModelFile};
    if (fs::is_regular_file(folder / kBuffersFile)) files.push_back(folder / kBuffersFile);
    return files;
  }
  throw DataError(
      fmt::format("wanted a .safetensors file or a folder with {}, found neither", kModelFile),
      {.file = path.string(),
       .key = "classify.encoder_path",
       .hint = "name the run folder of a training, or its model.safetensors"});
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

std::vector<nn::NamedTensor> encoder_tensors(const nn::SignalClassifier& model) {
  std::vector<nn::NamedTensor> tensors = model.parameters();
  std::erase_if(tensors, [](const nn::NamedTensor& tensor) { return !is_of_encoder(tensor.name); });
  for (nn::NamedTensor& buffer : model.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

}  // namespace

ChannelPooling parse_channel_pooling(const std::string& name) {
  for (const auto& [known, pooling] : kPoolings)
    if (name == known) return pooling;
  throw ConfigError(fmt::format("unknown pooling `{}`", name),
                    {.hint = "flatten, average, first or joint"});
}

std::string channel_pooling_name(ChannelPooling pooling) {
  for (const auto& [name, known] : kPoolings)
    if (pooling == known) return name;
  throw StateError("a pooling without a name");
}

std::string signal_config_text(const nn::SignalClassifierSpec& spec,
                               const std::vector<std::string>& channel_names,
                               const std::vector<std::string>& class_names) {
  const io::Json json = {{"architecture", "signal_classifier"},
                         {"pooling", channel_pooling_name(spec.encoder.pooling)},
                         {"window_rows", spec.encoder.window_rows},
                         {"widths", spec.encoder.widths},
                         {"kernel_sizes", spec.encoder.kernel_sizes},
                         {"hidden_dims", spec.hidden},
                         {"dropout", spec.dropout},
                         {"channels", channel_names},
                         {"classes", class_names}};
  return json.dump(2) + "\n";
}

void save_signal_classifier(const nn::SignalClassifier& model, const std::string& config_text,
                            const fs::path& folder) {
  std::vector<io::TensorSource> sources;
  for (const std::vector<nn::NamedTensor>& part : {model.parameters(), model.buffers()})
    for (const nn::NamedTensor& tensor : part)
      sources.push_back(device::tensor_source(tensor.name, tensor.value.detach()));
  io::write_safetensors(folder / kModelFile, std::move(sources));
  write_file_atomic(folder / "config.json", config_text);
}

void load_signal_encoder(nn::SignalClassifier& model, const fs::path& path) {
  std::vector<std::unique_ptr<io::SafetensorsFile>> files;
  std::map<std::string, const io::TensorView*> found;
  for (const fs::path& file : encoder_files(path)) {
    files.push_back(std::make_unique<io::SafetensorsFile>(file));
    for (const io::TensorView& view : files.back()->tensors())
      if (is_of_encoder(view.name)) found[view.name] = &view;
  }
  const at::NoGradGuard no_grad;
  std::string wrong;
  for (const nn::NamedTensor& wanted : encoder_tensors(model)) {
    const auto entry = found.find(wanted.name);
    if (entry == found.end()) {
      wrong += fmt::format("{} is missing; ", wanted.name);
      continue;
    }
    const std::vector<int64_t> shape = wanted.value.sizes().vec();
    if (entry->second->shape != shape)
      wrong += fmt::format("{} is {}, wanted {}; ", wanted.name, shape_text(entry->second->shape),
                           shape_text(shape));
    else
      at::Tensor(wanted.value).copy_(device::copy_to_tensor(*entry->second, at::kFloat));
    found.erase(entry);
  }
  for (const auto& [name, view] : found) wrong += fmt::format("{} is left over; ", name);
  if (wrong.empty()) return;
  wrong.resize(wrong.size() - 2);
  throw DataError(fmt::format("not the encoder of this network: {}", wrong),
                  {.file = path.string(),
                   .key = "classify.encoder_path",
                   .hint = "classify.pooling, widths and kernel_sizes must be those it was trained "
                           "with"});
}

}  // namespace convoy::models
