// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/checkpoint.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/internal/optimizer_parts.h"
#include "convoy/train/checkpoint/checkpoint.h"

namespace convoy {
namespace {

using checkpoint::GroupReader;
using checkpoint::Piece;
using detail::HeldState;
using detail::OptimizerMemory;
using detail::Sharing;

// True when this rank writes the tensor or shard number `index`. Tensors that all ranks hold are
// divided among the ranks.
bool writes(Sharing& sharing, size_t index, bool on_every_rank) {
  if (!on_every_rank) return sharing.writes_shards();
  const ProcessGroup& group = sharing.group();
  return index % static_cast<size_t>(group.size()) == static_cast<size_t>(group.rank());
}

detail::NameOf names_of(const std::vector<ShardView>& shards) {
  std::map<const void*, std::string> names;
  for (const ShardView& shard : shards) names[shard.value.unsafeGetTensorImpl()] = shard.name;
  return [names = std::move(names)](const at::Tensor& parameter) {
    const auto found = names.find(parameter.unsafeGetTensorImpl());
    if (found == names.end())
      throw ConfigError(
          fmt::format("the optimizer has a parameter of shape [{}] that is not one of the model's",
                      fmt::join(parameter.sizes(), ", ")),
          {.hint = "make the optimizer of the wrapper's parameters()"});
    return found->second;
  };
}

std::vector<Piece> model_pieces(Sharing& sharing) {
  std::vector<Piece> pieces = {};
  const std::vector<ShardView> shards = sharing.stored_shards();
  for (size_t index = 0; index < shards.size(); ++index)
    if (writes(sharing, index, sharing.replicated()))
      pieces.push_back(
          {shards[index].name, shards[index].shape, shards[index].begin, shards[index].value});
  if (sharing.group().is_leader())
    for (const auto& buffer : sharing.buffers())
      pieces.push_back({buffer.key(), buffer.value().sizes().vec(), 0, buffer.value()});
  return pieces;
}

std::string state_name(const std::string& parameter, const std::string& key) {
  return parameter + "/" + key;
}

// The piece for one state of a parameter. A state with one number for each element of the shard is
// cut like the parameter; any other state belongs to the whole parameter.
Piece state_piece(const ShardView& shard, const std::string& key, const at::Tensor& state) {
  const std::string name = state_name(shard.name, key);
  if (state.numel() == shard.value.numel()) return {name, shard.shape, shard.begin, state};
  if (shard.value.sizes() != at::IntArrayRef(shard.shape))
    throw ConfigError(
        fmt::format("the optimizer's `{}` has {} numbers for {} of the parameter's", name,
                    state.numel(), shard.value.numel()),
        {.hint =
             "such an optimizer does not work on shards: take AdamW, or DistributedDataParallel"});
  return {name, state.sizes().vec(), 0, state};
}

struct OptimizerParts {
  std::vector<Piece> pieces = {};
  io::Json numbers = io::Json::object();  // state numbers by parameter
  io::Json options = {};
};

OptimizerParts optimizer_parts(Sharing& sharing, const HeldState& held) {
  const std::vector<ShardView> shards = sharing.stored_shards();
  OptimizerMemory memory = detail::memory_of(held.optimizer, names_of(shards));
  OptimizerParts parts{.options = std::move(memory.options)};
  for (size_t index = 0; index < shards.size(); ++index) {
    const auto own = memory.by_name.find(shards[index].name);
    if (own == memory.by_name.end()) continue;
    if (!own->second.numbers.empty()) parts.numbers[own->first] = std::move(own->second.numbers);
    if (!writes(sharing, index, held.on_every_rank)) continue;
    for (const auto& [key, tensor] : own->second.tensors)
      parts.pieces.push_back(state_piece(shards[index], key, tensor));
  }
  return parts;
}

// Collective. The number states of all ranks.
io::Json numbers_of_all(ProcessGroup& group, const io::Json& own) {
  io::Json all = io::Json::object();
  for (const std::string& text : group.all_gather_bytes(own.dump()))
    all.update(io::parse_json(text, "another rank"));
  return all;
}

at::Tensor read_cut(const GroupReader& reader, const ShardView& shard, const std::string& name) {
  const std::vector<int64_t>& stored = reader.shape(name);
  if (stored != shard.shape)
    throw CheckpointError(
        fmt::format("the checkpoint holds {} of shape [{}], the model needs [{}]", name,
                    fmt::join(stored, ", "), fmt::join(shard.shape, ", ")),
        {.hint =
             "make the model with the sizes that it was saved with, or name another checkpoint"});
  return reader.read(name, shard.begin, shard.value.numel()).view(shard.value.sizes());
}

void load_model(const GroupReader& reader, Sharing& sharing) {
  const at::NoGradGuard no_grad;
  for (const ShardView& shard : sharing.stored_shards()) {
    at::Tensor value = shard.value;
    value.copy_(read_cut(reader, shard, shard.name));
  }
  for (const auto& buffer : sharing.buffers()) {
    const ShardView whole{buffer.key(), buffer.value().sizes().vec(), 0, buffer.value()};
    at::Tensor value = buffer.value();
    value.copy_(read_cut(reader, whole, whole.name));
  }
}

// The states of `shard` in the checkpoint, by key.
std::map<std::string, at::Tensor> read_states(const GroupReader& reader,
                                              const std::vector<std::string>& names,
                                              const ShardView& shard) {
  std::map<std::string, at::Tensor> states;
  const std::string prefix = state_name(shard.name, "");
  for (auto name = std::lower_bound(names.begin(), names.end(), prefix);
       name != names.end() && name->starts_with(prefix); ++name) {
    const bool is_cut = reader.shape(*name) == shard.shape;
    const at::Tensor state = is_cut ? read_cut(reader, shard, *name) : reader.read(*name);
    states[name->substr(prefix.size())] = state.to(shard.value.device());
  }
  return states;
}

void load_optimizer(const GroupReader& reader, const io::Json& saved, Sharing& sharing,
                    const HeldState& held) {
  const std::vector<ShardView> shards = sharing.stored_shards();
  const std::vector<std::string> names = reader.names();
  OptimizerMemory memory{.by_name = {}, .options = saved.at("options")};
  const io::Json& numbers = saved.at("numbers");
  for (const ShardView& shard : shards) {
    detail::ParameterMemory own{.tensors = read_states(reader, names, shard)};
    if (numbers.contains(shard.name)) own.numbers = numbers.at(shard.name);
    if (!own.tensors.empty() || !own.numbers.empty()) memory.by_name[shard.name] = std::move(own);
  }
  detail::remember(held.optimizer, memory, names_of(shards));
}

// Reads the tensor in parts, so that a large tensor is never in memory whole.
io::TensorSource source_of(const std::shared_ptr<const GroupReader>& reader,
                           const std::string& name) {
  io::TensorSource source{
      .name = name, .dtype = reader->dtype(name), .shape = reader->shape(name), .produce = {}};
  const int64_t numel = source.num_bytes() / io::dtype_bytes(source.dtype);
  source.produce = [reader, name, numel](const io::ByteSink& sink) {
    constexpr int64_t kPart = 1 << 22;
    for (int64_t begin = 0; begin < numel; begin += kPart) {
      const at::Tensor part = reader->read(name, begin, std::min(kPart, numel - begin));
      sink({static_cast<const std::byte*>(part.const_data_ptr()), part.nbytes()});
    }
  };
  return source;
}

}  // namespace

struct CheckpointFolder::State {
  std::shared_ptr<ProcessGroup> group;
  std::filesystem::path folder;
  checkpoint::CheckpointStore store;
  bool prepared = false;
};

CheckpointFolder::CheckpointFolder(std::filesystem::path folder,
                                   std::shared_ptr<ProcessGroup> group, int64_t keep) {
  if (keep < 1)
    throw ConfigError(fmt::format("at least one checkpoint must stay, found keep = {}", keep),
                      {.hint = "give keep 1 or more"});
  state_ = std::make_unique<State>(
      State{detail::required(std::move(group)), folder, checkpoint::CheckpointStore(folder, keep)});
}
CheckpointFolder::~CheckpointFolder() = default;

void CheckpointFolder::save_parts(int64_t step, Sharing& sharing, HeldState held,
                                  const std::map<std::string, std::string>& notes) {
  ProcessGroup& group = *state_->group;
  if (group.is_leader() && !state_->prepared) state_->store.prepare();
  state_->prepared = true;
  OptimizerParts optimizer = optimizer_parts(sharing, held);
  checkpoint::TrainState state;
  state.progress.step = step;
  state.extra = {{"numbers", numbers_of_all(group, optimizer.numbers)},
                 {"options", std::move(optimizer.options)},
                 {"notes", notes}};
  checkpoint::TrainTensors tensors;
  tensors.pieces["model"] = model_pieces(sharing);
  tensors.pieces["optimizer"] = std::move(optimizer.pieces);
  comm::Group& ranks = detail::ranks_of(group);
  ranks.await_device();
  state_->store.start_save_together(ranks, std::move(state), std::move(tensors), /*is_best=*/false)
      ->wait();
  ranks.wait_for_all();  // until rank 0 has published the checkpoint
}

void CheckpointFolder::export_model(const std::filesystem::path& file) {
  const auto found = state_->store.load_newest();
  if (!found)
    throw CheckpointError("there is no checkpoint yet whose model could be exported",
                          {.file = state_->folder.string(), .hint = "call save() before"});
  const auto reader = std::make_shared<const GroupReader>(found->folder, "model");
  std::vector<io::TensorSource> sources;
  for (const std::string& name : reader->names()) sources.push_back(source_of(reader, name));
  io::write_safetensors(file, std::move(sources),
                        {{"format", "pt"},
                         {"step", std::to_string(found->state.progress.step)},
                         {"notes", found->state.extra.at("notes").dump()}});
}

// Rank 0 finds the newest whole checkpoint, which means reading all of it once. The other ranks use
// its result.
std::optional<Resumed> CheckpointFolder::load_parts(Sharing& sharing, HeldState held) {
  ProcessGroup& group = *state_->group;
  io::Json word = nullptr;
  if (group.is_leader())
    if (const auto found = state_->store.load_newest())
      word = {{"folder", std::filesystem::absolute(found->folder).string()},
              {"step", found->state.progress.step},
              {"extra", found->state.extra}};
  detail::ranks_of(group).wait_for_all();
  word = io::parse_json(group.all_gather_bytes(group.is_leader() ? word.dump() : "").front(),
                        "rank 0");
  if (word.is_null()) return std::nullopt;
  const std::string folder = word.at("folder").get<std::string>();
  const io::Json& extra = word.at("extra");
  load_model(GroupReader(folder, "model"), sharing);
  sharing.after_load();
  load_optimizer(GroupReader(folder, "optimizer"), extra, sharing, held);
  detail::ranks_of(group).wait_for_all();  // no rank saves while another one reads
  return Resumed{word.at("step").get<int64_t>(),
                 extra.at("notes").get<std::map<std::string, std::string>>()};
}

}  // namespace convoy
