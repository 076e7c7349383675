// SPDX-License-Identifier: Apache-2.0
//
// How fast guesses are, of an experiment and of a peer program. Blocks.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "convoy/farm/sweep/workload.h"

namespace convoy::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Guesses per second of all threads together, each with `guesses` of its own.
inline double guess_rate(const sweep::GuessExperiment& experiment, unsigned threads,
                         uint64_t guesses) {
  std::vector<std::thread> workers;
  const auto start = Clock::now();
  for (unsigned at = 0; at < threads; ++at)
    workers.emplace_back([&experiment, at, guesses] { experiment.run(at * guesses, guesses); });
  for (std::thread& worker : workers) worker.join();
  return static_cast<double>(threads * guesses) / seconds_since(start);
}

// `guesses_per_s` of the first line that a command prints; 0 when there is none.
inline double peer_rate(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 4096> text = {};
  if (!pipe || fgets(text.data(), static_cast<int>(text.size()), pipe.get()) == nullptr) return 0;
  const auto object = nlohmann::json::parse(text.data(), nullptr, false);
  return object.is_object() ? object.value("guesses_per_s", 0.0) : 0;
}

}  // namespace convoy::bench
