// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a group hold one module between them: each all of it, or each its shards.
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
  // The part of every parameter that this rank holds, frozen ones too.
  virtual std::vector<ShardView> stored_shards() = 0;
  virtual torch::OrderedDict<std::string, torch::Tensor> buffers() = 0;
  virtual bool replicated() const = 0;  // every rank holds every parameter
  // False on ranks whose shards are another rank's as well, which writes them.
  virtual bool writes_shards() const { return true; }
  // Collective. After values were written into stored_shards().
  virtual void after_load() {}
  virtual void set_synchronised(bool synchronised) = 0;
  virtual bool synchronised() const = 0;
};

}  // namespace detail
}  // namespace convoy
