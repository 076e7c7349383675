// SPDX-License-Identifier: Apache-2.0
//
// The gradients of sharded parameters: summed over ranks, each rank keeps those of its piece.
// Driven by the thread that runs autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <memory>
#include <vector>

#include "convoy/train/comm/group.h"
#include "convoy/train/parallel/gradient_hooks.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::parallel {

class ShardedGradients {
 public:
  // `flats` in the order in which a forward pass uses them: backward makes their gradients ready in
  // the opposite one.
  ShardedGradients(comm::Group& group, std::vector<std::shared_ptr<FlatUnit>> flats);

  // fp32 [elements of a piece], by flat: the sums over ranks and passes since the last reset.
  const at::Tensor& own(size_t flat) const { return slots_[flat].own; }

  // Before a pass. When `sends`, what backward makes ready is summed over ranks while it runs, and
  // the whole gradients are let go; else they are kept and added to by the next pass.
  void begin_pass(bool sends) { sends_ = sends; }
  // Collective when the pass sends: what has not left yet leaves, absent gradients as zeros. Blocks
  // until own() holds the sums.
  void end_pass();
  // After the sums were used.
  void reset();

 private:
  struct Slot {
    std::shared_ptr<FlatUnit> flat;
    at::Tensor whole = {};      // fp32, all pieces; undefined while there is no gradient
    std::vector<bool> touched;  // by parameter, since `whole` is there
    size_t arrived = 0;         // gradients of this pass
    at::Tensor own;
    bool summed = false;  // own holds a sum already
  };
  struct Reduction {
    size_t slot;
    at::Tensor sum;  // of a piece
    std::unique_ptr<comm::Work> work;
  };
  struct Leaf {
    size_t slot;
    size_t range;
  };

  void receive(size_t leaf, const at::Tensor& gradient);
  void send_what_is_ready();
  void send(size_t slot);
  void collect_oldest();

  comm::Group& group_;
  std::vector<Slot> slots_;
  std::vector<Leaf> leaves_;
  std::deque<Reduction> under_way_;
  bool sends_ = false;
  size_t sent_ = 0;  // slots of this pass, from the last one on
  std::unique_ptr<GradientHooks> hooks_;
};

}  // namespace convoy::parallel
