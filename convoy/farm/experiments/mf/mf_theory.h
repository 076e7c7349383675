// SPDX-License-Identifier: Apache-2.0
//
// The mean test loss of all guesses, where it has a closed form.
//
// E Y = 0, because the weights of the last layer are symmetric. So the mean is (E |P Y|^2 + |P
// truth|^2) / tested with the projector P onto the space that no measurement covers, and E Y_rc
// Y_sd = [c = d] s^2 / n_cols E (H H^T)_rs with the variance s^2 of a weight and the last hidden
// matrix H. The second moments of H are known if there is one hidden layer, or if all hidden layers
// are linear.
#pragma once

#include "convoy/farm/experiments/mf/mf_problem.h"

namespace convoy::experiments {

// False with gnc_normalize, and with several hidden layers that are not linear.
bool has_exact_prior_mean(const MfParameters& parameters);

// The mean test loss of all guesses; NaN if it has no closed form.
double mf_prior_mean(const MfProblem& problem);

}  // namespace convoy::experiments
