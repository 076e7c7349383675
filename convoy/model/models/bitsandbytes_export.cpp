// SPDX-License-Identifier: Apache-2.0
//
// A file is written in the order of its types, so the tensors beside a weight's codes come before
// or long after the codes. Each weight is encoded twice: once for those tensors, which are kept in
// memory, and once more when its codes are written.
#include "convoy/model/models/bitsandbytes_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/json_text.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/models/stored_codes.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;
using kernels::BitsandbytesFormat;
using kernels::BitsandbytesWeight;
using kernels::CodeType;
using ReadTensor = std::function<at::Tensor()>;

constexpr int64_t kCodedPieceElements = int64_t{1} << 22;
constexpr int64_t kMaxShardBytes = 5'000'000'000;

// The tensors to write, and the progress of the work.
class Sources {
 public:
  Sources(std::string place, const Advance& advance)
      : place_(std::move(place)), work_(std::make_shared<Work>(Work{advance, 0, 0})) {}

  void add_coded(const std::string& name, const BitsandbytesFormat& format,
                 const ReadTensor& read) {
    const auto encode = [place = place_, name, format, read] {
      try {
        const at::Tensor values = read();
        return kernels::encode_weight(
            values.scalar_type() == at::kDouble ? values.to(at::kFloat) : values, format);
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}: {}", name, error.what()),
                        {.file = place, .key = name, .hint = error.location().hint});
      }
    };
    const BitsandbytesWeight weight = encode();
    for (io::TensorSource& source : sources_beside_codes(name, weight))
      list_.push_back(std::move(source));
    ++work_->done;
    ++work_->total;
    add({.name = name,
         .dtype = device::stored_dtype(weight.codes.scalar_type()),
         .shape = weight.codes.sizes().vec(),
         .produce = [encode](const io::ByteSink& sink) { sink_tensor(encode().codes, sink); }});
    work_->tell();
  }

  void add_decoded(const std::string& name, const StoredCodes& codes,
                   std::optional<at::ScalarType> dtype) {
    const at::ScalarType stored = dtype.value_or(codes.dtype());
    add({.name = name,
         .dtype = device::stored_dtype(stored),
         .shape = codes.shape(),
         .produce = [codes, stored](const io::ByteSink& sink) {
           sink_tensor(kernels::decode_weight(codes.read(), stored), sink);
         }});
  }

  // Adds a tensor as it is stored; floats are converted to `dtype`.
  void add_copy(const std::string& name, const io::TensorView& view,
                std::optional<at::ScalarType> dtype = {}) {
    const at::ScalarType own = device::tensor_dtype(view.dtype);
    const at::ScalarType stored = device::is_float(view.dtype) ? dtype.value_or(own) : own;
    add({.name = name,
         .dtype = device::stored_dtype(stored),
         .shape = view.shape,
         .produce = [&view, stored](const io::ByteSink& sink) {
           for (int64_t begin = 0; begin < view.num_elements(); begin += kCodedPieceElements) {
             const int64_t count = std::min(kCodedPieceElements, view.num_elements() - begin);
             sink_tensor(device::copy_to_tensor(view.elements(begin, count)).to(stored), sink);
           }
         }});
  }

  void add_all(std::vector<io::TensorSource> sources) {
    for (io::TensorSource& source : sources) add(std::move(source));
  }

  const std::vector<io::TensorSource>& list() const { return list_; }
  std::vector<io::TensorSource> take() { return std::move(list_); }

 private:
  struct Work {
    Advance advance;
    int64_t done;
    int64_t total;
    void tell() const { advance(done, total); }
  };

  static void sink_tensor(const at::Tensor& tensor, const io::ByteSink& sink) {
    sink({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()});
  }

  void add(io::TensorSource source) {
    ++work_->total;
    source.produce = [produce = std::move(source.produce), work = work_](const io::ByteSink& sink) {
      produce(sink);
      ++work->done;
      work->tell();
    };
    list_.push_back(std::move(source));
  }

  std::string place_;
  std::shared_ptr<Work> work_;
  std::vector<io::TensorSource> list_;
};

// Writes config.json last, so that a folder that has it is complete.
void write_folder(const fs::path& folder, Sources& sources,
                  std::map<std::string, std::string> files) {
  io::write_model_weights(folder, sources.take(), kMaxShardBytes);
  const auto config = files.extract("config.json");
  for (const auto& [name, text] : files) write_file_atomic(folder / name, text);
  write_file_atomic(folder / "config.json", config.mapped());
}

// The codes of a file, by the names of their weights.
std::map<std::string, StoredCodes> codes_of(const io::ModelWeights& file, const fs::path& path) {
  const FindTensor find = [&](const std::string& name) { return file.find(name); };
  std::map<std::string, StoredCodes> found;
  for (const std::string& name : file.names())
    if (std::optional<StoredCodes> codes = StoredCodes::find(name, find, path.string()))
      found.emplace(name, std::move(*codes));
  return found;
}

// The coding in the config.json of a whole checkpoint. Transformers identifies weights by its
// modules' names, and would quantise each linear map that is not listed there, even the head.
WeightCoding coding_of_whole(WeightCoding coding, const std::string& text_module,
                             const CheckpointRest& rest) {
  constexpr std::string_view kBody = "model.";
  for (std::string& name : coding.skip_modules)
    if (name.starts_with(kBody)) name = text_module + "." + name.substr(kBody.size());
  std::set<std::string> parts = {"lm_head"};
  for (const io::TensorSource& source : rest.sources()) {
    const size_t begin = source.name.starts_with(kBody) ? kBody.size() : 0;
    const std::string part = source.name.substr(begin, source.name.find('.', begin) - begin);
    if (part != "language_model") parts.insert(std::string(kBody) + part);
  }
  coding.skip_modules.insert(coding.skip_modules.end(), parts.begin(), parts.end());
  return coding;
}

[[noreturn]] void refuse_codes(const std::string& place) {
  throw ConfigError("the weights are quantised already",
                    {.file = place, .hint = "use --dequantize for the reverse"});
}
[[noreturn]] void refuse_numbers(const std::string& place) {
  throw ConfigError("no weight is quantised", {.file = place, .hint = "leave --dequantize out"});
}

}  // namespace

void write_bitsandbytes_model(const io::ModelFolder& source, const fs::path& folder,
                              const WeightCoding& coding, const Advance& advance, Extent extent) {
  const CheckpointWeights weights = open_weights(source, coding);
  const CheckpointRest rest(source, extent);
  const architecture::DecoderSpec spec = families::read_decoder_spec(source);
  Sources sources(source.path().string(), advance);
  bool any = false;
  for (const architecture::ParameterDeclaration& parameter :
       architecture::declare_parameters(spec)) {
    const std::string& name = parameter.name;
    if (weights.find_stored_codes(name) != nullptr) refuse_codes(source.path().string());
    if (architecture::is_map_of_blocks(parameter) && weights.coding_of(name)) {
      any = true;
      sources.add_coded(rest.saved_name(name), *coding.format, [&weights, name] {
        return weights.read(name, weights.stored_dtype(name));
      });
    } else {
      sources.add_copy(rest.saved_name(name), weights.view(name));
    }
  }
  if (!any)
    throw ConfigError("skip_modules leaves out every linear layer, so nothing is quantised",
                      {.key = "skip_modules", .hint = "leave fewer modules out"});
  sources.add_all(rest.sources());
  std::map<std::string, std::string> files = model_files(source, extent, {});
  nlohmann::json config = nlohmann::json::parse(files.at("config.json"));
  const bool keeps_rest = extent == Extent::Whole && holds_more_than_text(source);
  config["quantization_config"] = quantization_config_json(
      keeps_rest ? coding_of_whole(coding, spec.text_module, rest) : coding);
  files["config.json"] = io::sorted_json_text(config, true);
  write_folder(folder, sources, std::move(files));
}

void write_decoded_model(const io::ModelFolder& source, const fs::path& folder,
                         std::optional<at::ScalarType> dtype, const Advance& advance,
                         Extent extent) {
  const CheckpointWeights weights = open_weights(source, {});
  const CheckpointRest rest(source, extent);
  Sources sources(source.path().string(), advance);
  bool any = false;
  for (const architecture::ParameterDeclaration& parameter :
       architecture::declare_parameters(families::read_decoder_spec(source))) {
    const StoredCodes* const codes = weights.find_stored_codes(parameter.name);
    any = any || codes != nullptr;
    if (codes != nullptr)
      sources.add_decoded(rest.saved_name(parameter.name), *codes, dtype);
    else
      sources.add_copy(rest.saved_name(parameter.name), weights.view(parameter.name), dtype);
  }
  if (!any) refuse_numbers(source.path().string());
  sources.add_all(rest.sources());
  // When the rest has another type than the text model, config.json keeps the source's type.
  const bool is_all = dtype && one_dtype(sources.list()) == dtype;
  write_folder(folder, sources, model_files(source, extent, is_all ? dtype : std::nullopt));
}

void write_bitsandbytes_tensors(const fs::path& source, const fs::path& output,
                                const BitsandbytesFormat& format, const Advance& advance) {
  const io::ModelWeights file(source);
  if (!codes_of(file, source).empty()) refuse_codes(source.string());
  Sources sources(source.string(), advance);
  for (const std::string& name : file.names()) {
    const io::TensorView& view = file.require(name);
    const bool fits = format.type != CodeType::Int8 || view.shape.size() == 2;
    if (device::is_float(view.dtype) && view.num_elements() > 0 && fits)
      sources.add_coded(name, format, [&view] { return device::copy_to_tensor(view); });
    else
      sources.add_copy(name, view);
  }
  io::write_safetensors(output, sources.take());
}

void write_decoded_tensors(const fs::path& source, const fs::path& output,
                           std::optional<at::ScalarType> dtype, const Advance& advance) {
  const io::ModelWeights file(source);
  const std::map<std::string, StoredCodes> codes = codes_of(file, source);
  if (codes.empty()) refuse_numbers(source.string());
  Sources sources(source.string(), advance);
  std::set<std::string> beside;
  for (const auto& [name, stored] : codes) {
    beside.insert(stored.keys().begin(), stored.keys().end());
    sources.add_decoded(name, stored, dtype);
  }
  for (const std::string& name : file.names())
    if (!codes.contains(name) && !beside.contains(name))
      sources.add_copy(name, file.require(name), dtype);
  io::write_safetensors(output, sources.take());
}

}  // namespace convoy::models
