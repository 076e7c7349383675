// SPDX-License-Identifier: Apache-2.0
//
// The form and the place in which AdamW keeps the two moments of a parameter.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace convoy::optim {

enum class MomentType { Fp32, Bf16, Int8 };

struct StateFormat {
  MomentType moments = MomentType::Fp32;
  // A bf16 parameter has an fp32 master; else its own value is rounded by chance.
  bool has_masters = true;
  // Moments of large parameters lie in the host's memory and are copied to the device for their
  // step. On the CPU that is the same memory.
  bool is_paged = false;
  // bitsandbytes' rules: moments of parameters of fewer elements stay fp32, or are not paged.
  int64_t smallest_int8 = 4096;
  int64_t smallest_paged = 100'000;
};

// "fp32", "bf16", "int8".
std::string moment_type_name(MomentType type);
// The type of moments for a parameter of `numel` elements.
MomentType moment_type(const StateFormat& format, int64_t numel);

// Bytes that the optimizer holds of a parameter beside value and gradient.
struct StateBytes {
  int64_t moments = 0;
  int64_t master = 0;
  bool is_paged = false;
};
StateBytes state_bytes(const StateFormat& format, int64_t numel, bool is_bf16);

struct Moments {
  at::Tensor exp_avg;  // in the parameter's shape
  at::Tensor exp_avg_sq;
  at::Tensor exp_avg_scale;  // fp32 [blocks of kernels::kMomentBlock]; of Int8 alone
  at::Tensor exp_avg_sq_scale;
  bool is_paged = false;

  // Zeros for `value`, which is a parameter of `whole_numel` elements or a piece of one.
  static Moments zeros(const StateFormat& format, const at::Tensor& value, int64_t whole_numel);
  // Copies on another device. Async.
  Moments on(at::Device device) const;
  // Async, in the order of the current stream of the other's device.
  void copy_from(const Moments& other);
};

}  // namespace convoy::optim
