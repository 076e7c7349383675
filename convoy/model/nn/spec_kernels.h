// SPDX-License-Identifier: Apache-2.0
//
// Translates the enums of architecture/ into the enums of the kernels.
#pragma once

#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"

namespace convoy::nn {

inline kernels::NormOrder kernel_of(architecture::NormOrder order) {
  return order == architecture::NormOrder::CastThenScale
             ? kernels::NormOrder::CastThenScale
             : kernels::NormOrder::ScaleByOnePlusThenCast;
}

inline kernels::Activation kernel_of(architecture::Activation activation) {
  return activation == architecture::Activation::Silu ? kernels::Activation::Silu
                                                      : kernels::Activation::GeluTanh;
}

}  // namespace convoy::nn
