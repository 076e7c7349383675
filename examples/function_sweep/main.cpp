// SPDX-License-Identifier: Apache-2.0
//
// The mean distance from the origin of random walks, over their length and number of dimensions: eight seeds of each, on
// all CPUs. Killed and started again, it goes on.
#include <convoy/error.h>
#include <convoy/sweep.h>

#include <cmath>
#include <cstdio>
#include <random>

namespace {

double mean_distance(const nlohmann::json& parameters, int64_t seed) {
  const auto steps = parameters.at("steps").get<int>();
  const auto dimensions = parameters.at("dimensions").get<size_t>();
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::normal_distribution<double> step;
  constexpr int kWalks = 200;
  double sum = 0;
  for (int walk = 0; walk < kWalks; ++walk) {
    std::vector<double> place(dimensions);
    for (int at = 0; at < steps; ++at)
      for (double& coordinate : place) coordinate += step(random);
    double square = 0;
    for (const double coordinate : place) square += coordinate * coordinate;
    sum += std::sqrt(square);
  }
  return sum / kWalks;
}

}  // namespace

int main(int argc, char** argv) {
  const convoy::FunctionSweep walks{.name = "walks",
                                    .grid = {{"steps", {100, 200, 400}}, {"dimensions", {1, 2, 3}}},
                                    .seeds = {0, 1, 2, 3, 4, 5, 6, 7},
                                    .value = mean_distance};
  try {
    const auto results = convoy::run_function_sweep(walks, {.store = "walks.db"}, argc, argv);
    if (!results) return 0;  // this process was a worker
    std::fputs(results->table.c_str(), stdout);
    return results->failed_cells() == 0 ? 0 : 1;
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "%s\n", error.sentence().c_str());
    return static_cast<int>(error.code());
  }
}
