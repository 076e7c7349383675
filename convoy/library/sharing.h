// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a group hold one module between them: each all of it, or each its shards.
#pragma once

#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/library/process_group.h"

namespace convoy {

// What one rank optimizes of one parameter: all of it, or a piece of its elements in row-major
// order.
struct ShardView {
  std::string name;            // "blocks.0.weight", as the module without Convoy names it
  std::vector<int64_t> shape;  // of the whole parameter
  int64_t begin = 0;           // of the piece in the flattened parameter
  torch::Tensor value;         // where it trains, a leaf that requires grad
};

namespace library {

class Sharing {
 public:
  virtual ~Sharing() = default;
  virtual ProcessGroup& group() = 0;
  // What this rank holds of all parameters, frozen ones too.
  virtual std::vector<ShardView> stored_shards() = 0;
  virtual torch::OrderedDict<std::string, torch::Tensor> buffers() = 0;
  virtual bool replicated() const = 0;  // every rank holds every parameter
  virtual void set_synchronised(bool synchronised) = 0;
  virtual bool synchronised() const = 0;
};

}  // namespace library

// A scope without synchronised backward passes.
class NoSync {
 public:
  explicit NoSync(library::Sharing& sharing) : sharing_(sharing), before_(sharing.synchronised()) {
    sharing_.set_synchronised(false);
  }
  ~NoSync() { sharing_.set_synchronised(before_); }
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  library::Sharing& sharing_;
  bool before_;
};

}  // namespace convoy
