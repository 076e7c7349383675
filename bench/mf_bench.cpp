// SPDX-License-Identifier: Apache-2.0
//
// Guesses per second of `mf` (5 x 5, 15 measurements, eps 0.02), beside the batched PyTorch loop
// bench/peers/mf_guess_and_check.py when CONVOY_PEER_PYTHON names a Python with torch; and gradient
// descent of the width experiment on one core. The best of several turns, peer and kernels
// alternating, so that both see the same machine.
// Usage, in the project's folder: mf_bench [threads = 2] [turns = 3]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/guess_rate.h"
#include "convoy/farm/experiments/mf/mf_workload.h"

namespace {

using convoy::experiments::MfWorkload;
using convoy::experiments::Precision;
using convoy::sweep::Cell;

struct Shape {
  int width, depth;
  const char* activation;
  const char* shortcut;  // the best that is allowed
};

double torch_rate(const Shape& shape, double guesses) {
  const char* python = std::getenv("CONVOY_PEER_PYTHON");
  if (python == nullptr) return 0;
  return convoy::bench::peer_rate(fmt::format("{} bench/peers/mf_guess_and_check.py {} {} {} {}",
                                              python, shape.width, shape.depth, shape.activation,
                                              guesses));
}

void measure(const Shape& shape, unsigned threads, int turns) {
  const double normals = 10.0 * shape.width + (shape.depth - 2.0) * shape.width * shape.width;
  const auto guesses = static_cast<uint64_t>(1.5e9 / normals);
  double exact = 0, fast = 0, quick = 0, peer = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const auto rate = [&](Precision precision, const char* shortcut) {
      const std::string parameters = fmt::format(
          R"({{"width": {}, "depth": {}, "activation": "{}", "shortcut": "{}", "gnc_eps_train": 0.02}})",
          shape.width, shape.depth, shape.activation, shortcut);
      const auto experiment = MfWorkload(precision).guesses({"gnc", 0, parameters});
      return convoy::bench::guess_rate(*experiment, threads, guesses);
    };
    peer = std::max(peer, torch_rate(shape, 2e8 / normals));
    exact = std::max(exact, rate(Precision::Exact, "none"));
    fast = std::max(fast, rate(Precision::Fast, "none"));
    quick = std::max(quick, rate(Precision::Exact, shape.shortcut));
  }
  fmt::print("width {} depth {} {}, {} threads: exact {:.3g}/s, fast {:.3g}/s, {} {:.3g}/s",
             shape.width, shape.depth, shape.activation, threads, exact, fast, shape.shortcut,
             quick);
  if (peer > 0)
    fmt::print("; torch {:.3g}/s: {:.1f}x, {:.1f}x, {:.1f}x", peer, exact / peer, fast / peer,
               quick / peer);
  fmt::print("\n");
}

void measure_descent() {
  std::vector<Cell> cells;
  for (int seed = 0; seed < 8; ++seed)
    for (const int width : {5, 10, 20, 40, 80, 160})
      cells.push_back(
          {"gd", seed,
           fmt::format(R"({{"width": {}, "gd_lr": 1e-4, "gd_init_scale": 1e-3}})", width)});
  const auto start = convoy::bench::Clock::now();
  MfWorkload().compute(cells);
  fmt::print("descent of 8 seeds x 6 widths x 1e5 steps, 1 thread: {:.2f} s\n",
             convoy::bench::seconds_since(start));
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 2;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 3;
  for (const Shape& shape : {Shape{5, 2, "Linear", "none"},
                             {20, 2, "Linear", "bartlett"},
                             {160, 2, "Linear", "bartlett"},
                             {40, 2, "LeakyReLU", "gram"},
                             {5, 6, "Tanh", "none"}})
    measure(shape, threads, turns);
  measure_descent();
  return 0;
}
