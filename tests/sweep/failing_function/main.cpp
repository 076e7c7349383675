// SPDX-License-Identifier: Apache-2.0
//
// Sweeps a function that throws for one of its two cells. Prints each cell, and exits with the
// number of failed cells.
#include <convoy/sweep.h>

#include <cstdio>
#include <stdexcept>

namespace {

double half_of_one(const nlohmann::json& parameters, int64_t) {
  if (parameters.at("x") != 1) throw std::runtime_error("only one has a half here");
  return 0.5;
}

}  // namespace

int main(int argc, char** argv) {
  const convoy::FunctionSweep halves{
      .name = "halves", .grid = {{"x", {1, 2}}}, .seeds = {7}, .value = half_of_one};
  const auto results = convoy::run_function_sweep(
      halves, {.store = "halves.db", .workers = 1, .max_attempts = 1}, argc, argv);
  if (!results) return 0;
  for (const convoy::SweepResults::Cell& cell : results->cells)
    std::printf("%s seed %d: %g %s\n", cell.parameters.dump().c_str(), static_cast<int>(cell.seed),
                cell.value, cell.failure.c_str());
  return static_cast<int>(results->failed_cells());
}
