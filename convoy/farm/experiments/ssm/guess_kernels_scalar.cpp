// SPDX-License-Identifier: Apache-2.0
//
// The loops of guess-and-check compiled for any CPU.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "convoy/farm/experiments/ssm/guess_kernels.h"

namespace convoy::experiments::scalar {
namespace {
#include "convoy/farm/experiments/random/lanes_scalar.inl"
#include "convoy/farm/experiments/random/normal_transform.inl"
#include "convoy/farm/experiments/random/philox_lanes.inl"
#include "convoy/farm/experiments/ssm/guess_loops.inl"
}  // namespace

extern const GuessKernels kGuessKernels;
const GuessKernels kGuessKernels = make_kernels();

}  // namespace convoy::experiments::scalar
