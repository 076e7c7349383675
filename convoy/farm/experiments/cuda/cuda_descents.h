// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent on a GPU. The results have the same bits as on a CPU.
#pragma once

#include <memory>

#include "convoy/farm/experiments/cuda/device.h"
#include "convoy/farm/experiments/mf/mf_descent.h"
#include "convoy/farm/experiments/ssm/ssm_descent.h"

namespace convoy::experiments::cuda {

// Throws what Driver::check() throws; calls of the returned function do so too.
MfDescend mf_descend_on(std::shared_ptr<Device> device);
// Descends from each problem's initial weights. Throws what Driver::check() throws.
std::vector<sweep::CellOutcome> descend_ssm(const std::vector<SsmProblem>& problems,
                                            const std::shared_ptr<Device>& device);

}  // namespace convoy::experiments::cuda
