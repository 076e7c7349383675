// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/checkpoint/group_files.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPiecesKey = "convoy.pieces";

std::string piece_file(const std::string& group, int rank, int num_ranks) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", group, rank + 1, num_ranks);
}

// Number of ranks that wrote parts of a group; 0 = there is none.
int ranks_of(const fs::path& folder, const std::string& group) {
  const std::string begin = group + "-00001-of-";
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin)) return std::atoi(name.c_str() + begin.size());
  }
  return 0;
}

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

std::string group_file(const std::string& group) { return group + ".safetensors"; }

void write_pieces(io::SnapshotWriter& writer, const std::string& group, int rank, int num_ranks,
                  const std::vector<Piece>& pieces) {
  io::Json list = io::Json::object();
  std::vector<io::TensorSource> sources;
  const auto reader = std::make_shared<device::PieceReader>();
  for (const Piece& piece : pieces) {
    list[piece.name] = {{"shape", piece.shape}, {"begin", piece.begin}};
    sources.push_back(device::tensor_source(piece.name, piece.values.detach().view({-1}), reader));
  }
  writer.write_tensors(piece_file(group, rank, num_ranks), std::move(sources),
                       {{"format", "pt"}, {kPiecesKey, list.dump()}});
}

GroupReader::GroupReader(const fs::path& folder, const std::string& group)
    : place_(folder.string()) {
  const int num_ranks = ranks_of(folder, group);
  const auto open = [&](const std::string& name) -> const io::SafetensorsFile& {
    if (!fs::exists(folder / name))
      throw CheckpointError(
          fmt::format("the checkpoint holds no {}", name),
          {.file = place_,
           .hint = "resume from an older checkpoint, or start anew with --resume never"});
    files_.push_back(std::make_unique<io::SafetensorsFile>(folder / name));
    return *files_.back();
  };
  if (num_ranks == 0) add_whole(open(group_file(group)));
  for (int rank = 0; rank < num_ranks; ++rank) add_pieces(open(piece_file(group, rank, num_ranks)));
  for (auto& [name, entry] : entries_)
    std::sort(entry.parts.begin(), entry.parts.end(),
              [](const Part& left, const Part& right) { return left.begin < right.begin; });
}

void GroupReader::add_whole(const io::SafetensorsFile& file) {
  for (const io::TensorView& view : file.tensors())
    entries_[view.name] = {view.shape, {{0, view.num_elements(), &view}}};
}

void GroupReader::add_pieces(const io::SafetensorsFile& file) {
  const std::string place = file.path().string();
  const auto listed = file.metadata().find(kPiecesKey);
  if (listed == file.metadata().end())
    throw CheckpointError(
        "the file does not name the tensors of its pieces",
        {.file = place,
         .hint = "resume from an older checkpoint, or start anew with --resume never"});
  try {
    const io::JsonReader list(io::parse_json(listed->second, place), place);
    for (const io::TensorView& view : file.tensors()) {
      const io::JsonReader piece = list.require_object(view.name);
      if (!piece.has("shape")) piece.fail("shape", "wanted the sizes of the tensor, found nothing");
      Entry& entry = entries_[view.name];
      entry.shape = piece.ints_or_empty("shape", 0, INT64_MAX);
      entry.parts.push_back({piece.require_int("begin", 0, INT64_MAX), view.num_elements(), &view});
    }
  } catch (const DataError& error) {
    throw CheckpointError(
        fmt::format("the list of its pieces is damaged: {}", error.what()),
        {.file = place,
         .hint = "resume from an older checkpoint, or start anew with --resume never"});
  }
}

std::vector<std::string> GroupReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const GroupReader::Entry& GroupReader::require(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw CheckpointError(
        fmt::format("the checkpoint lacks `{}`", name),
        {.file = place_,
         .hint = "resume from an older checkpoint, or start anew with --resume never"});
  return found->second;
}

const std::vector<int64_t>& GroupReader::shape(const std::string& name) const {
  return require(name).shape;
}

io::Dtype GroupReader::dtype(const std::string& name) const {
  return require(name).parts.front().view->dtype;
}

at::Tensor GroupReader::read(const std::string& name, int64_t begin, int64_t count) const {
  const Entry& entry = require(name);
  at::Tensor values;
  int64_t done = 0;
  for (const Part& part : entry.parts) {
    const int64_t at = begin + done;
    if (done == count || at < part.begin || at >= part.begin + part.count) continue;
    const int64_t piece = std::min(part.begin + part.count - at, count - done);
    const at::Tensor found = device::copy_to_tensor(part.view->elements(at - part.begin, piece));
    if (!values.defined()) values = at::empty({count}, found.options());
    values.narrow(0, done, piece).copy_(found);
    done += piece;
  }
  if (done < count)
    throw CheckpointError(
        fmt::format("no file of the checkpoint holds element {} of `{}`", begin + done, name),
        {.file = place_,
         .hint = "resume from an older checkpoint, or start anew with --resume never"});
  return values.defined() ? values : at::empty({0});
}

at::Tensor GroupReader::read(const std::string& name) const {
  const std::vector<int64_t>& whole = shape(name);
  return read(name, 0, product(whole)).view(whole);
}

}  // namespace convoy::checkpoint
