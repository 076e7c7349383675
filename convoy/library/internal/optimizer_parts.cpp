// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/optimizer_parts.h"

#include <torch/serialize/archive.h>

#include <sstream>

#include "convoy/core/base/error.h"

namespace convoy::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

InputArchive read_back(OutputArchive& written) {
  std::stringstream stream;
  written.save_to(stream);
  InputArchive archive;
  archive.load_from(stream);
  return archive;
}

io::Json to_json(const c10::IValue& value, const std::string& key) {
  if (value.isDouble()) return value.toDouble();
  if (value.isInt()) return value.toInt();
  if (value.isBool()) return value.toBool();
  if (value.isString()) return value.toStringRef();
  if (value.isNone()) return nullptr;
  if (value.isTuple()) {
    io::Json list = io::Json::array();
    for (const c10::IValue& element : value.toTupleRef().elements())
      list.push_back(to_json(element, key));
    return list;
  }
  throw ConfigError(fmt::format("the optimizer's `{}` is a {}, which a checkpoint cannot hold", key,
                                value.tagKind()),
                    {.hint = "keep numbers, texts and tensors in the optimizer's state"});
}

c10::IValue from_json(const io::Json& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_null()) return {};
  std::vector<c10::IValue> elements;
  for (const io::Json& element : json) elements.push_back(from_json(element));
  return c10::ivalue::Tuple::create(std::move(elements));
}

// The key of a parameter in LibTorch's archives.
std::string address_of(const at::Tensor& parameter) {
  return std::to_string(reinterpret_cast<size_t>(parameter.unsafeGetTensorImpl()));
}

ParameterMemory memory_in(InputArchive& archive) {
  ParameterMemory memory;
  for (const std::string& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    if (value.isTensor())
      memory.tensors[key] = value.toTensor();
    else
      memory.numbers[key] = to_json(value, key);
  }
  return memory;
}

io::Json options_in(InputArchive& archive) {
  io::Json options = io::Json::object();
  for (const std::string& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    options[key] = to_json(value, key);
  }
  return options;
}

void write_memory(OutputArchive& archive, const ParameterMemory& memory) {
  for (const auto& [key, tensor] : memory.tensors) archive.write(key, tensor, /*is_buffer=*/true);
  for (const auto& [key, number] : memory.numbers.items()) archive.write(key, from_json(number));
}

}  // namespace

OptimizerMemory memory_of(const torch::optim::Optimizer& optimizer, const NameOf& name_of) {
  OutputArchive written;
  optimizer.save(written);
  InputArchive archive = read_back(written);
  InputArchive states, groups;
  archive.read("state", states);
  archive.read("param_groups", groups);
  OptimizerMemory memory;
  for (size_t index = 0; index < optimizer.param_groups().size(); ++index) {
    InputArchive group, options;
    groups.read("param_groups/" + std::to_string(index), group);
    group.read("options", options);
    memory.options.push_back(options_in(options));
    for (const at::Tensor& parameter : optimizer.param_groups()[index].params()) {
      const std::string name = name_of(parameter);
      InputArchive state;
      if (states.try_read(address_of(parameter), state)) memory.by_name[name] = memory_in(state);
    }
  }
  return memory;
}

void remember(torch::optim::Optimizer& optimizer, const OptimizerMemory& memory,
              const NameOf& name_of) {
  OutputArchive archive;
  OutputArchive states(archive.compilation_unit());
  OutputArchive groups(archive.compilation_unit());
  const size_t num_groups = optimizer.param_groups().size();
  if (memory.options.size() != num_groups)
    throw ConfigError(fmt::format("the optimizer has {} groups of parameters, the checkpoint {}",
                                  num_groups, memory.options.size()),
                      {.hint = "make the optimizer with the groups that it was saved with"});
  groups.write("param_groups/size", at::tensor(static_cast<int64_t>(num_groups), at::kLong));
  for (size_t index = 0; index < num_groups; ++index) {
    OutputArchive group(archive.compilation_unit());
    OutputArchive options(archive.compilation_unit());
    const std::vector<at::Tensor>& parameters = optimizer.param_groups()[index].params();
    group.write("params/size", at::tensor(static_cast<int64_t>(parameters.size()), at::kLong));
    for (size_t at = 0; at < parameters.size(); ++at) {
      const std::string address = address_of(parameters[at]);
      group.write("params/" + std::to_string(at), c10::IValue(address));
      const auto known = memory.by_name.find(name_of(parameters[at]));
      if (known == memory.by_name.end()) continue;
      OutputArchive state(archive.compilation_unit());
      write_memory(state, known->second);
      states.write(address, state);
    }
    for (const auto& [key, value] : memory.options[index].items())
      options.write(key, from_json(value));
    group.write("options", options);
    groups.write("param_groups/" + std::to_string(index), group);
  }
  archive.write("pytorch_version", c10::IValue("1.5.0"));
  archive.write("state", states);
  archive.write("param_groups", groups);
  InputArchive read = read_back(archive);
  optimizer.load(read);
}

}  // namespace convoy::detail
