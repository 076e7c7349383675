// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/optim/moments.h"

#include <ATen/ATen.h>

#include "convoy/model/kernels/adamw/adamw_update.h"

namespace convoy::optim {
namespace {

constexpr int64_t kFloatBytes = 4;

int64_t blocks_of(int64_t numel) {
  return (numel + kernels::kMomentBlock - 1) / kernels::kMomentBlock;
}

at::ScalarType scalar_type(MomentType type) {
  if (type == MomentType::Int8) return at::kByte;
  return type == MomentType::Bf16 ? at::kBFloat16 : at::kFloat;
}

bool pages(const StateFormat& format, int64_t numel) {
  return format.is_paged && numel >= format.smallest_paged;
}

at::Tensor copy_on(const at::Tensor& tensor, at::Device device) {
  return tensor.defined() ? tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true,
                                      /*copy=*/true)
                          : tensor;
}

}  // namespace

std::string moment_type_name(MomentType type) {
  if (type == MomentType::Int8) return "int8";
  return type == MomentType::Bf16 ? "bf16" : "fp32";
}

MomentType moment_type(const StateFormat& format, int64_t numel) {
  return format.moments == MomentType::Int8 && numel < format.smallest_int8 ? MomentType::Fp32
                                                                            : format.moments;
}

StateBytes state_bytes(const StateFormat& format, int64_t numel, bool is_bf16) {
  const MomentType type = moment_type(format, numel);
  const auto each = static_cast<int64_t>(c10::elementSize(scalar_type(type)));
  const int64_t scales = type == MomentType::Int8 ? blocks_of(numel) * kFloatBytes : 0;
  return {.moments = 2 * (numel * each + scales),
          .master = is_bf16 && format.has_masters ? numel * kFloatBytes : 0,
          .is_paged = pages(format, numel)};
}

Moments Moments::zeros(const StateFormat& format, const at::Tensor& value, int64_t whole_numel) {
  const MomentType type = moment_type(format, whole_numel);
  Moments moments;
  moments.is_paged = pages(format, whole_numel) && !value.is_cpu();
  auto options = value.options().dtype(scalar_type(type));
  if (moments.is_paged) options = options.device(at::kCPU).pinned_memory(true);
  moments.exp_avg = at::zeros(value.sizes(), options);
  moments.exp_avg_sq = at::zeros(value.sizes(), options);
  if (type != MomentType::Int8) return moments;
  // With a scale of 0 every code stands for the value zero.
  const int64_t blocks = blocks_of(value.numel());
  moments.exp_avg_scale = at::zeros({blocks}, options.dtype(at::kFloat));
  moments.exp_avg_sq_scale = at::zeros({blocks}, options.dtype(at::kFloat));
  return moments;
}

Moments Moments::on(at::Device device) const {
  return {.exp_avg = copy_on(exp_avg, device),
          .exp_avg_sq = copy_on(exp_avg_sq, device),
          .exp_avg_scale = copy_on(exp_avg_scale, device),
          .exp_avg_sq_scale = copy_on(exp_avg_sq_scale, device)};
}

void Moments::copy_from(const Moments& other) {
  exp_avg.copy_(other.exp_avg, /*non_blocking=*/true);
  exp_avg_sq.copy_(other.exp_avg_sq, /*non_blocking=*/true);
  if (!exp_avg_scale.defined()) return;
  exp_avg_scale.copy_(other.exp_avg_scale, /*non_blocking=*/true);
  exp_avg_sq_scale.copy_(other.exp_avg_sq_scale, /*non_blocking=*/true);
}

}  // namespace convoy::optim
