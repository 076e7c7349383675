// SPDX-License-Identifier: Apache-2.0
//
// A table with one row per cell, which holds everything that is known about the cell, for other
// programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

// Columns: workload, version, method, seed, then every parameter by name, then state, value,
// standard_error, low, high, guesses, accepted, non_finite, accepted_share, prior_mean, theory,
// asymptote, theory_acceptance, train_loss, steps, attempts, failure_kind, failure_message,
// failure_signal, failure_stderr, seconds, guesses_per_second, device. Programs have a column for
// each result by its name after value, no columns of guesses, closed forms and descents, and the
// columns folder and environment at the end. Missing values are empty (JSON: null).
std::vector<std::string> tidy_columns(const SweepResults& results);
std::string tidy_csv(const SweepResults& results);
nlohmann::ordered_json tidy_json(const SweepResults& results);  // an array of objects
// The text of tidy_json(), indented, with a newline at its end.
std::string tidy_json_text(const SweepResults& results);

}  // namespace convoy::sweep
