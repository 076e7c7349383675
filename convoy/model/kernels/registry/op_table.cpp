// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/registry/op_table.h"

#include <atomic>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/model/kernels/ops/cuda_devices.h"

namespace convoy::kernels {
namespace {

const OpTable& cpu_op_table() {
  static const OpTable table = {.rms_norm = kRmsNormCpu,
                                .rope = kRopeCpu,
                                .gated_activation = kGatedActivationCpu,
                                .gated_delta_rule = kGatedDeltaRuleCpu,
                                .short_convolution = kShortConvolutionCpu,
                                .delta_gates = kDeltaGatesCpu,
                                .attention = kAttentionCpu,
                                .paged_attention = kPagedAttentionCpu,
                                .cross_entropy = kCrossEntropyCpu,
                                .matrix_product = kMatrixProductCpu,
                                .bitsandbytes_weight = kBitsandbytesWeightCpu,
                                .frozen_linear = kFrozenLinearCpu,
                                .dropout = kDropoutCpu,
                                .norm_pool = kNormPoolCpu,
                                .sampler = kSamplerCpu,
                                .sum_of_squares = kSumOfSquaresCpu,
                                .adamw = kAdamWCpu};
  return table;
}

const OpTable& cuda_op_table() {
  static const OpTable table = [] { return cuda_ops(environment_text("CONVOY_CUDA_KERNELS")); }();
  return table;
}

std::atomic<const OpTable*> cpu_override{nullptr};

}  // namespace

const OpTable& aten_op_table() {
  static const OpTable table = {.rms_norm = kRmsNormAten,
                                .rope = kRopeAten,
                                .gated_activation = kGatedActivationAten,
                                .gated_delta_rule = kGatedDeltaRuleAten,
                                .short_convolution = kShortConvolutionAten,
                                .delta_gates = kDeltaGatesAten,
                                .attention = kAttentionAten,
                                .paged_attention = kPagedAttentionAten,
                                .cross_entropy = kCrossEntropyAten,
                                .matrix_product = kMatrixProductAten,
                                .bitsandbytes_weight = kBitsandbytesWeightAten,
                                .frozen_linear = kFrozenLinearAten,
                                .dropout = kDropoutAten,
                                .norm_pool = kNormPoolAten,
                                .sampler = kSamplerAten,
                                .sum_of_squares = kSumOfSquaresAten,
                                .adamw = kAdamWAten};
  return table;
}

const OpTable& own_kernel_op_table() {
  static const OpTable table = [] {
    OpTable own = aten_op_table();
    own.rms_norm = kRmsNormCuda;
    own.rope = kRopeCuda;
    own.gated_activation = kGatedActivationCuda;
    own.paged_attention = kPagedAttentionCuda;
    own.cross_entropy = kCrossEntropyCuda;
    own.bitsandbytes_weight = kBitsandbytesWeightCuda;
    own.frozen_linear = kFrozenLinearCuda;
    own.dropout = kDropoutCuda;
    own.sampler = kSamplerCuda;
    own.sum_of_squares = kSumOfSquaresCuda;
    own.adamw = kAdamWCuda;
    return own;
  }();
  return table;
}

OpTable cuda_ops(const std::string& kernels) {
  if (!kernels.empty() && kernels != "own" && kernels != "aten")
    throw ConfigError(fmt::format("CONVOY_CUDA_KERNELS needs own or aten, found {}", kernels),
                      {.key = "CONVOY_CUDA_KERNELS",
                       .hint = "unset it: Convoy's own kernels are the usual ones"});
  OpTable table = kernels == "aten" ? aten_op_table() : own_kernel_op_table();
  table.attention = kAttentionCuda;
  return table;
}

const OpTable& op_table(at::Device device) {
  switch (device.type()) {
    case at::kCPU:
      if (const OpTable* table = cpu_override.load(std::memory_order_relaxed)) return *table;
      return cpu_op_table();
    case at::kCUDA:
      return cuda_op_table();
    case at::kPrivateUse1:
      return takes_cuda_ops(device) ? cuda_op_table() : aten_op_table();
    default:
      throw DeviceError(fmt::format("no op of Convoy runs on {}", device.str()),
                        {.hint = "use --devices cpu or cuda"});
  }
}

const RmsNormOps& rms_norm_ops(at::Device device) { return op_table(device).rms_norm; }
const RopeOps& rope_ops(at::Device device) { return op_table(device).rope; }
const GatedActivationOps& gated_activation_ops(at::Device device) {
  return op_table(device).gated_activation;
}
const GatedDeltaRuleOps& gated_delta_rule_ops(at::Device device) {
  return op_table(device).gated_delta_rule;
}
const ShortConvolutionOps& short_convolution_ops(at::Device device) {
  return op_table(device).short_convolution;
}
const DeltaGatesOps& delta_gates_ops(at::Device device) { return op_table(device).delta_gates; }
const AttentionOps& attention_ops(at::Device device) { return op_table(device).attention; }
const PagedAttentionOps& paged_attention_ops(at::Device device) {
  return op_table(device).paged_attention;
}
const CrossEntropyOps& cross_entropy_ops(at::Device device) {
  return op_table(device).cross_entropy;
}
const MatrixProductOps& matrix_product_ops(at::Device device) {
  return op_table(device).matrix_product;
}
const BitsandbytesWeightOps& bitsandbytes_weight_ops(at::Device device) {
  return op_table(device).bitsandbytes_weight;
}
const FrozenLinearOps& frozen_linear_ops(at::Device device) {
  return op_table(device).frozen_linear;
}
const DropoutOps& dropout_ops(at::Device device) { return op_table(device).dropout; }
const NormPoolOps& norm_pool_ops(at::Device device) { return op_table(device).norm_pool; }
const SamplerOps& sampler_ops(at::Device device) { return op_table(device).sampler; }
const SumOfSquaresOps& sum_of_squares_ops(at::Device device) {
  return op_table(device).sum_of_squares;
}
const AdamWOps& adamw_ops(at::Device device) { return op_table(device).adamw; }

CpuTableOverride::CpuTableOverride(const OpTable& table) : before_(cpu_override.exchange(&table)) {}
CpuTableOverride::~CpuTableOverride() { cpu_override = before_; }

}  // namespace convoy::kernels
