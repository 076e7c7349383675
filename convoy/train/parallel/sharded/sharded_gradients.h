// SPDX-License-Identifier: Apache-2.0
//
// The gradients of sharded parameters: summed over ranks; each rank keeps the gradients of its
// piece. Driven by the thread that runs autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "convoy/train/comm/group.h"
#include "convoy/train/parallel/gradient_hooks.h"
#include "convoy/train/parallel/sharded/sharded_units.h"

namespace convoy::parallel {

// The ranks over which a pass sums its gradients. None: no sum, the next pass adds to the
// gradients. Shared: the ranks that share one training state. All: those ranks, and the replicas of
// that state.
enum class GradientSums { None, Shared, All };

struct GradientRanks {
  comm::Group& sharing;
  comm::Group* replicas = nullptr;  // ranks that hold the same pieces; null: there are none
};

class ShardedGradients {
 public:
  // Called with each gradient that backward has made, before ShardedGradients takes it.
  using WhenArrived = std::function<void(const at::Tensor& gradient)>;
  // `flats` are in the order in which a forward pass uses them: backward makes their gradients
  // ready in the opposite order. Sums are sent as `wire`, and add up in fp32 from pass to pass.
  // `when_summed` is called once own(flat) is the gradient of the step.
  ShardedGradients(const GradientRanks& ranks, std::vector<std::shared_ptr<FlatUnit>> flats,
                   std::optional<at::ScalarType> wire,
                   std::function<void(size_t flat)> when_summed = nullptr,
                   WhenArrived when_arrived = nullptr);

  // fp32 [elements of a piece], by flat: the sums over ranks and passes since the last reset.
  const at::Tensor& own(size_t flat) const { return slots_[flat].own; }

  // Call it before a pass. With Shared and All, gradients are summed as backward makes them ready,
  // and the whole gradients are freed. Use All once, in the last pass before the sums are used.
  void begin_pass(GradientSums sums) { sums_ = sums; }
  // Sends the gradients that are not sent yet, and zeros for absent gradients. Collective when the
  // pass sums. Work queued afterwards sees the sums in own().
  void end_pass();
  // Call it after the sums were used.
  void reset();

 private:
  struct Slot {
    std::shared_ptr<FlatUnit> flat;
    at::Tensor whole = {};      // fp32, all pieces; undefined while there is no gradient
    std::vector<bool> touched;  // by parameter, since `whole` is defined
    size_t arrived = 0;         // gradients of this pass
    at::Tensor own;
    bool summed = false;  // own holds a sum already
  };
  struct Reduction {
    size_t slot;
    at::Tensor sum;  // the piece's sum
    std::unique_ptr<comm::Work> work;
  };
  struct ReplicaSum {
    size_t slot;
    at::Tensor sent;
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
  void send_to_replicas(size_t slot);
  void end_sum(size_t slot);
  at::Tensor as_sent(const at::Tensor& values) const;

  const GradientRanks ranks_;
  const std::optional<at::ScalarType> wire_;
  const std::function<void(size_t flat)> when_summed_;
  const WhenArrived when_arrived_;
  std::vector<Slot> slots_;
  std::vector<Leaf> leaves_;
  std::deque<Reduction> under_way_;
  std::vector<ReplicaSum> replica_sums_;  // running sums over replicas
  GradientSums sums_ = GradientSums::None;
  size_t sent_ = 0;  // number of slots sent in this pass; the last slot is sent first
  std::unique_ptr<GradientHooks> hooks_;
};

}  // namespace convoy::parallel
