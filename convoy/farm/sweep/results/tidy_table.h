// SPDX-License-Identifier: Apache-2.0
//
// One row per cell: everything that is known of it, for other programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// Columns: workload, version, method, seed, then every parameter by name, then state, value,
// standard_error, low, high, guesses, accepted, non_finite, accepted_share, prior_mean, theory,
// asymptote, theory_acceptance, train_loss, steps, attempts, failure_kind, failure_message,
// failure_signal, failure_stderr, seconds, guesses_per_second, device. Programs have a
// column for each result by its name after value, none of guesses, closed forms and descents, and
// folder and environment at the end. Missing values are empty (JSON: null).
std::vector<std::string> tidy_columns(const SweepResults& results);
std::string tidy_csv(const SweepResults& results);
nlohmann::ordered_json tidy_json(const SweepResults& results);  // an array of objects
std::string tidy_json_text(const SweepResults& results);  // that, indented, with its last newline

}  // namespace convoy::sweep
