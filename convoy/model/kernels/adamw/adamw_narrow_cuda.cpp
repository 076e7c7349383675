// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/adamw/adamw_narrow_launch.h"
#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/dynamic_code/dynamic_code.h"

namespace convoy::kernels {
namespace {

static_assert(gpu::kNarrowBlock == kMomentBlock);

gpu::CodeTable table_of(DynamicMap kind) {
  const DynamicCode& code = DynamicCode::of(kind);
  gpu::CodeTable table{};
  std::copy(code.values().begin(), code.values().end(), table.values);
  std::copy(code.thresholds().begin(), code.thresholds().end(), table.thresholds);
  for (uint32_t at = 0; at < gpu::kCodeBuckets; ++at) {
    const uint32_t bits = (gpu::kFirstCodeBucket + at) << gpu::kCodeBucketBits;
    const auto magnitude = __builtin_bit_cast(float, bits);
    table.lowest[0][at] = code.lowest_of_bucket(magnitude);
    table.lowest[1][at] = code.lowest_of_bucket(-magnitude);
  }
  CONVOY_INVARIANT(table.lowest[0][0] == code.lowest_of_bucket(0.0F) &&
                       table.lowest[1][0] == code.lowest_of_bucket(-0.0F),
                   "codes of numbers below 2^-27");
  return table;
}

// gpu::CodeTables as a tensor of bytes.
at::Tensor code_tables(at::Device device) {
  static const gpu::CodeTables tables = {table_of(DynamicMap::Signed),
                                         table_of(DynamicMap::Unsigned)};
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&tables);
  return device::to_device<uint8_t>({bytes, bytes + sizeof(tables)}, device);
}

gpu::MomentType moment_type(const at::Tensor& moment) {
  if (moment.scalar_type() == at::kByte) return gpu::MomentType::Codes;
  return moment.scalar_type() == at::kFloat ? gpu::MomentType::Fp32 : gpu::MomentType::Bf16;
}

uint16_t is_bf16(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }

float* floats_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

gpu::NarrowAdamWParameter narrow_addresses_of(const AdamWTensors& of) {
  return {.value = of.value.mutable_data_ptr(),
          .gradient = of.gradient.const_data_ptr(),
          .exp_avg = of.exp_avg.mutable_data_ptr(),
          .exp_avg_sq = of.exp_avg_sq.mutable_data_ptr(),
          .exp_avg_scale = floats_or_null(of.exp_avg_scale),
          .exp_avg_sq_scale = floats_or_null(of.exp_avg_sq_scale),
          .rounded = of.rounded.defined() ? of.rounded.mutable_data_ptr() : nullptr,
          .count = static_cast<uint64_t>(of.value.numel()),
          .first_element = static_cast<uint64_t>(of.first_element),
          .key = counter_key(of.draw_key),
          .moments = moment_type(of.exp_avg),
          .value_is_bf16 = is_bf16(of.value),
          .gradient_is_bf16 = is_bf16(of.gradient)};
}

}  // namespace

void update_narrow_on_cuda(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  const bool has_codes =
      std::any_of(parameters.begin(), parameters.end(), [](const AdamWTensors& parameter) {
        return moment_type(parameter.exp_avg) == gpu::MomentType::Codes;
      });
  const at::Tensor tables = has_codes ? code_tables(parameters[0].value.device()) : at::Tensor();
  const gpu::NarrowAdamWLaunch empty{
      .factors = factors_of(step),
      .tables = has_codes ? static_cast<const gpu::CodeTables*>(tables.const_data_ptr()) : nullptr};
  gpu::NarrowAdamWLaunch launched = empty;
  PartlyMoved moved;
  const auto start = [&] {
    const uint64_t blocks = launched.first_chunk[launched.num_parameters];
    if (blocks > 0) launch(parameters[0].value, "adamw_narrow", blocks, launched, moved);
    launched = empty;
    moved.clear();
  };
  for (const AdamWTensors& parameter : parameters) {
    const uint32_t number = launched.num_parameters++;
    launched.parameters[number] = narrow_addresses_of(parameter);
    add_moved_twice({parameter.value, parameter.exp_avg, parameter.exp_avg_sq,
                     parameter.exp_avg_scale, parameter.exp_avg_sq_scale},
                    moved);
    add_moved_once({parameter.gradient, parameter.rounded}, moved);
    const uint64_t chunks =
        (launched.parameters[number].count + gpu::kNarrowChunk - 1) / gpu::kNarrowChunk;
    launched.first_chunk[number + 1] = launched.first_chunk[number] + chunks;
    if (launched.num_parameters == gpu::kNarrowParameters) start();
  }
  start();
}

}  // namespace convoy::kernels
