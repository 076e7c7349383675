// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"
#include "convoy/model/kernels/adamw/adamw_launch.h"
#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/cuda/launch.h"

namespace convoy::kernels {
namespace {

gpu::AdamWParameter addresses_of(const AdamWTensors& of) {
  CONVOY_INVARIANT(!of.rounded.defined() || of.rounded.scalar_type() == at::kBFloat16,
                   "adamw rounds to bf16, wanted {}", c10::toString(of.rounded.scalar_type()));
  return {.value = of.value.mutable_data_ptr<float>(),
          .gradient = of.gradient.const_data_ptr(),
          .exp_avg = of.exp_avg.mutable_data_ptr<float>(),
          .exp_avg_sq = of.exp_avg_sq.mutable_data_ptr<float>(),
          .rounded = of.rounded.defined() ? of.rounded.mutable_data_ptr() : nullptr,
          .count = static_cast<uint64_t>(of.value.numel())};
}

void update(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  const gpu::AdamWLaunch empty{.factors = factors_of(step)};
  gpu::AdamWLaunch launched = empty;
  PartlyMoved moved;
  const auto start = [&] {
    const uint64_t chunks = launched.first_chunk[launched.num_parameters];
    if (chunks > 0) launch(parameters[0].value, "adamw", chunks, launched, moved);
    launched = empty;  // an address left over would be counted as memory that is read
    moved.clear();
  };
  for (const AdamWTensors& parameter : parameters) {
    const bool is_bf16 = parameter.gradient.scalar_type() == at::kBFloat16;
    if (launched.gradients_are_bf16 != is_bf16) start();
    launched.gradients_are_bf16 = is_bf16;
    const uint32_t number = launched.num_parameters++;
    launched.parameters[number] = addresses_of(parameter);
    add_moved_twice({parameter.value, parameter.exp_avg, parameter.exp_avg_sq}, moved);
    add_moved_once({parameter.gradient, parameter.rounded}, moved);
    const uint64_t chunks =
        (launched.parameters[number].count + gpu::kAdamWChunk - 1) / gpu::kAdamWChunk;
    launched.first_chunk[number + 1] = launched.first_chunk[number] + chunks;
    if (launched.num_parameters == gpu::kAdamWParameters) start();
  }
  start();
}

}  // namespace

const AdamWOps kAdamWCuda = {update, update_narrow_on_cuda};

}  // namespace convoy::kernels
