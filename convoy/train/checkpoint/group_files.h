// SPDX-License-Identifier: Apache-2.0
//
// The tensors of one group of a checkpoint ("optimizer"). They lie in one file that rank 0 wrote,
// or in one file from each rank that held pieces of them. A reader requests the elements that it
// needs, whatever the number of ranks that wrote the checkpoint.
//
//   <group>.safetensors                     whole tensors
//   <group>-00001-of-00004.safetensors      flat pieces; the metadata say of which tensors
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convoy/core/io/safetensors.h"
#include "convoy/core/io/snapshot_writer.h"

namespace convoy::checkpoint {

// Elements of a tensor in row-major order.
struct Piece {
  std::string name;
  std::vector<int64_t> shape;  // the whole tensor's shape
  int64_t begin = 0;
  at::Tensor values;  // the elements of the piece, flat
};

std::string group_file(const std::string& group);
// Writes the file of the pieces that `rank` of `num_ranks` ranks holds. Throws IoError.
void write_pieces(io::SnapshotWriter& writer, const std::string& group, int rank, int num_ranks,
                  const std::vector<Piece>& pieces);

// Maps the files; reads only the requested elements.
class GroupReader {
 public:
  // Throws CheckpointError when the folder holds no such group or lacks the files of some ranks.
  GroupReader(const std::filesystem::path& folder, const std::string& group);

  const std::string& place() const { return place_; }  // the folder
  std::vector<std::string> names() const;              // sorted
  // shape(), dtype() and read() throw CheckpointError for a name that the group lacks; read() also
  // for elements that no file holds. read() returns a CPU tensor of the stored type.
  const std::vector<int64_t>& shape(const std::string& name) const;
  io::Dtype dtype(const std::string& name) const;
  at::Tensor read(const std::string& name, int64_t begin, int64_t count) const;  // [count]
  at::Tensor read(const std::string& name) const;                                // the whole tensor

 private:
  struct Part {
    int64_t begin = 0;
    int64_t count = 0;
    const io::TensorView* view = nullptr;
  };
  struct Entry {
    std::vector<int64_t> shape;
    std::vector<Part> parts;  // by begin
  };
  const Entry& require(const std::string& name) const;
  void add_whole(const io::SafetensorsFile& file);
  void add_pieces(const io::SafetensorsFile& file);

  std::string place_;
  std::vector<std::unique_ptr<io::SafetensorsFile>> files_;
  std::map<std::string, Entry> entries_;
};

}  // namespace convoy::checkpoint
