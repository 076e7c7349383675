// SPDX-License-Identifier: Apache-2.0
//
// Guesses per second of `ssm` (w = e_1, alpha = 0.5) at d = 150 and 300, exact and fast, beside the
// batched PyTorch loop when CONVOY_PEER_PYTHON names a Python with torch and CONVOY_PEER_SCRIPT its
// script. The best of several turns, peer and kernels alternating, so that both see the same
// machine. `cycles` are of one core per 16 normals at the clock measured in the same turns; `bound`
// is what the arithmetic of the loop needs at two 512-bit instructions per cycle. Last, gradient
// descent of 8 seeds at 7 dimensions on one core.
// Usage: sweep_bench [threads = 2] [turns = 5]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/guess_rate.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace {

using convoy::bench::Clock;
using convoy::bench::seconds_since;
using convoy::experiments::Precision;

// A chain of one-cycle steps.
double clock_hz() {
  constexpr int64_t kSteps = 20'000'000;
  int64_t left = kSteps;
  const auto start = Clock::now();
  while (left > 0) {
    --left;
    asm volatile("" : "+r"(left));
  }
  return static_cast<double>(kSteps) / seconds_since(start);
}

double torch_rate(int dim) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  const char* script = std::getenv("CONVOY_PEER_SCRIPT");
  if (python == nullptr || script == nullptr) return 0;
  return convoy::bench::peer_rate(fmt::format("{} {} {} 4e6", python, script, dim));
}

// Vector instructions per 16 normals of the AVX-512 loop for power 1, less moves; a root is two.
// Counted in the disassembly: 136 per 64 normals of exact, 148 per 128 of fast.
constexpr double kInstructions[] = {34, 18.5};

void measure(int dim, unsigned threads, int turns) {
  const convoy::sweep::Cell cell{
      "gnc", 0, fmt::format(R"({{"alpha": 0.5, "w": [1, 0, 0, 0], "student_dim": {}}})", dim)};
  constexpr uint64_t kGuesses = 8'000'000;
  double best[2] = {}, peer = 0, hz = 0;
  for (int turn = 0; turn < turns; ++turn) {
    peer = std::max(peer, torch_rate(dim));
    for (const auto precision : {Precision::Exact, Precision::Fast}) {
      const auto experiment = convoy::experiments::SsmWorkload(precision).guesses(cell);
      double& found = best[static_cast<int>(precision)];
      found = std::max(found, convoy::bench::guess_rate(*experiment, threads, kGuesses));
      hz = std::max(hz, clock_hz());
    }
  }
  const double slots = (dim + 3) / 4 * 4;
  for (int at = 0; at < 2; ++at) {
    const double cycles = 16 * threads * hz / (best[at] * slots);
    const double bound = kInstructions[at] / 2;
    fmt::print(
        "d={} {:5} {} threads: {:.3g} guesses/s, {:.1f} cycles per 16 normals at {:.2f} GHz,", dim,
        at == 0 ? "exact" : "fast", threads, best[at], cycles, hz / 1e9);
    fmt::print(" bound {:.1f}: {:.0f} %", bound, 100 * bound / cycles);
    if (peer > 0) fmt::print("; torch {:.3g}: {:.1f}x", peer, best[at] / peer);
    fmt::print("\n");
  }
}

void measure_descent() {
  std::vector<convoy::sweep::Cell> cells;
  for (int seed = 0; seed < 8; ++seed)
    for (int dim = 150; dim <= 300; dim += 25)
      cells.push_back({"gd", seed, fmt::format(R"({{"student_dim": {}}})", dim)});
  const auto start = Clock::now();
  convoy::experiments::SsmWorkload().compute(cells);
  fmt::print("descent of 8 seeds x 7 dimensions x 1e4 steps, 1 thread: {:.2f} s\n",
             seconds_since(start));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 5;
  for (const int dim : {150, 300}) measure(dim, threads, turns);
  measure_descent();
  return 0;
}
