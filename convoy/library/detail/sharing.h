// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a group hold one module: each rank all of it, or each rank its shards.
#pragma once

#include <torch/ordered_dict.h>
#include <torch/types.h>

#include <string>
#include <vector>

namespace convoy {

class ProcessGroup;
struct ShardView;

namespace detail {

class Sharing {
 public:
  virtual ~Sharing() = default;
  virtual ProcessGroup& group() = 0;
  // This rank's part of every parameter, including frozen ones.
  virtual std::vector<ShardView> stored_shards() = 0;
  virtual torch::OrderedDict<std::string, torch::Tensor> buffers() = 0;
  virtual bool replicated() const = 0;  // every rank holds every parameter
  // False when another rank has the same shards and writes them.
  virtual bool writes_shards() const { return true; }
  // Collective. Call it after writing values into stored_shards().
  virtual void after_load() {}
  virtual void set_synchronised(bool synchronised) = 0;
  virtual bool synchronised() const = 0;
};

}  // namespace detail
}  // namespace convoy
