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
  // True: a bf16 parameter has an fp32 master. False: the bf16 value itself is updated, with
  // stochastic rounding.
  bool has_masters = true;
  // Moments of large parameters lie in the host's memory and are copied to the device for their
  // step. On the CPU both are the same memory.
  bool is_paged = false;
  // Parameters with fewer elements have fp32 moments (smallest_int8) or moments that are not paged
  // (smallest_paged), as in bitsandbytes.
  int64_t smallest_int8 = 4096;
  int64_t smallest_paged = 100'000;
};

// "fp32", "bf16", "int8".
std::string moment_type_name(MomentType type);
// The type of moments for a parameter of `numel` elements.
MomentType moment_type(const StateFormat& format, int64_t numel);

// Bytes that the optimizer holds for a parameter beside its value and gradient.
struct StateBytes {
  int64_t moments = 0;
  int64_t master = 0;
  bool is_paged = false;
};
StateBytes state_bytes(const StateFormat& format, int64_t numel, bool is_bf16);

struct Moments {
  at::Tensor exp_avg;  // in the parameter's shape
  at::Tensor exp_avg_sq;
  at::Tensor exp_avg_scale;  // fp32 [blocks of kernels::kMomentBlock]; with Int8 only
  at::Tensor exp_avg_sq_scale;
  bool is_paged = false;

  // Zeros for `value`, which is a parameter of `whole_numel` elements or a piece of one.
  static Moments zeros(const StateFormat& format, const at::Tensor& value, int64_t whole_numel);
  // Returns copies on `device`. Async.
  Moments on(at::Device device) const;
  // Async: copies in the current stream of the device.
  void copy_from(const Moments& other);
};

}  // namespace convoy::optim
