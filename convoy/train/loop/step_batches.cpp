// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/step_batches.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace convoy::train {
namespace {

// Counts the totals of a step once, with its first micro-batch: later the plan may hold the order
// of another epoch, since it keeps only one order.
class Preparation {
 public:
  Preparation(const data::BatchPlan& plan, int64_t rank, at::Device device, int64_t first_step,
              StepFlops flops)
      : plan_(plan),
        rank_(rank),
        device_(device),
        stream_(c10::impl::VirtualGuardImpl(device.type()).getStream(device)),
        first_step_(first_step),
        flops_(std::move(flops)) {}

  MicroBatch operator()(int64_t index) {
    const c10::StreamGuard on_stream(stream_);
    const int64_t step = first_step_ + index / plan_.config().grad_accum;
    const data::StepPosition position{step / plan_.steps_per_epoch(),
                                      step % plan_.steps_per_epoch()};
    const int64_t number = index % plan_.config().grad_accum;
    if (number == 0) totals_ = totals_at(position);
    std::vector<int64_t> rows = plan_.rows(position, number, rank_);
    LabelledBatch batch = assemble_batch(plan_.dataset(), rows, device_);
    return {.place = {.position = position, .number = number, .step = totals_},
            .batch = std::move(batch),
            .rows = std::move(rows)};
  }

 private:
  StepTotals totals_at(data::StepPosition position) const {
    const int64_t supervised_tokens = plan_.supervised_tokens(position);
    return {.rows = plan_.num_rows(position),
            .tokens = plan_.total_tokens(position),
            .supervised_tokens = supervised_tokens,
            .weight = plan_.loss_weight(position),
            .flops = flops_ ? flops_(plan_.row_tokens(position), supervised_tokens) : -1};
  }

  const data::BatchPlan& plan_;
  int64_t rank_;
  at::Device device_;
  c10::Stream stream_;
  int64_t first_step_;
  StepFlops flops_;
  StepTotals totals_;
};

}  // namespace

StepBatches::StepBatches(const data::BatchPlan& plan, int64_t rank, at::Device device,
                         StepRange steps, const StepFlops& flops)
    : batches_(std::max<int64_t>(0, steps.end - steps.first) * plan.config().grad_accum,
               Preparation(plan, rank, device, steps.first, flops)) {}

}  // namespace convoy::train
