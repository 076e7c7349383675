// SPDX-License-Identifier: Apache-2.0
//
// All ops of one kind of device, over the folders of all ops. An op (rms_norm.h, ...) holds what is
// the same everywhere: checks, autograd, order of calls. It takes its own functions for a device by
// the look-up that its x_ops.h declares and op_table.cpp defines, so no op includes this table. A
// new op adds one line to OpTable, its look-up, and one line to each table in op_table.cpp.
#pragma once

#include <string>

#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/attention/attention_ops.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight_ops.h"
#include "convoy/model/kernels/conv_stage/norm_pool_ops.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_ops.h"
#include "convoy/model/kernels/delta_gates/delta_gates_ops.h"
#include "convoy/model/kernels/dropout/dropout_ops.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"
#include "convoy/model/kernels/gated_activation/gated_activation_ops.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule_ops.h"
#include "convoy/model/kernels/matrix_product/matrix_product_ops.h"
#include "convoy/model/kernels/paged_attention/paged_attention_ops.h"
#include "convoy/model/kernels/rms_norm/rms_norm_ops.h"
#include "convoy/model/kernels/rope/rope_ops.h"
#include "convoy/model/kernels/sampler/sampler_ops.h"
#include "convoy/model/kernels/short_convolution/short_convolution_ops.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares_ops.h"

namespace convoy::kernels {

struct OpTable {
  RmsNormOps rms_norm;
  RopeOps rope;
  GatedActivationOps gated_activation;
  GatedDeltaRuleOps gated_delta_rule;
  ShortConvolutionOps short_convolution;
  DeltaGatesOps delta_gates;
  AttentionOps attention;
  PagedAttentionOps paged_attention;
  CrossEntropyOps cross_entropy;
  MatrixProductOps matrix_product;
  BitsandbytesWeightOps bitsandbytes_weight;
  FrozenLinearOps frozen_linear;
  DropoutOps dropout;
  NormPoolOps norm_pool;
  SamplerOps sampler;
  SumOfSquaresOps sum_of_squares;
  AdamWOps adamw;
};

// Throws DeviceError for a kind of device that has no table.
const OpTable& op_table(at::Device device);
inline const OpTable& op_table(const at::Tensor& tensor) { return op_table(tensor.device()); }

// ATen calls alone: what runs on any device of LibTorch, and on CPU tensors in tests.
const OpTable& aten_op_table();

// Convoy's own kernels for CUDA, and ATen calls for the other ops. Tests use it on CPU tensors, too
// (HostKernels).
const OpTable& own_kernel_op_table();

// The ops for CUDA tensors. `kernels`: "aten" leaves out Convoy's own, "own" or "" uses them.
// Throws ConfigError.
OpTable cuda_ops(const std::string& kernels);

// For tests: while an object lives, CPU tensors use `table` in every thread. Objects may nest.
class CpuTableOverride {
 public:
  explicit CpuTableOverride(const OpTable& table);
  ~CpuTableOverride();
  CpuTableOverride(const CpuTableOverride&) = delete;
  CpuTableOverride& operator=(const CpuTableOverride&) = delete;

 private:
  const OpTable* before_;
};

}  // namespace convoy::kernels
