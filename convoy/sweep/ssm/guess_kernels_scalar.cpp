// SPDX-License-Identifier: Apache-2.0
//
// The loops of guess-and-check compiled for any CPU.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "convoy/sweep/ssm/guess_kernels.h"

namespace convoy::sweep::scalar {
namespace {
#include "convoy/sweep/random/lanes_scalar.inl"
#include "convoy/sweep/random/normal_transform.inl"
#include "convoy/sweep/random/philox_lanes.inl"
#include "convoy/sweep/ssm/guess_loops.inl"
}  // namespace

extern const GuessKernels kGuessKernels;
const GuessKernels kGuessKernels = make_kernels();

}  // namespace convoy::sweep::scalar
