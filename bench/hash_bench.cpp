// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 and CRC32C, plain and with the processor's instructions: bytes of a long text, and texts as long as the
// identity of a task.
//   hash_bench
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/hash_kernels.h"

namespace {

using namespace convoy;

// The best of five.
double seconds_of(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

}  // namespace

int main() {
  constexpr size_t kLongBytes = 1 << 23;
  constexpr int kTexts = 100'000;
  const std::string long_text(kLongBytes, 'a');
  const std::string task(230, 'a');
  uint64_t sum = 0;
  for (const HashKernels* kernels : {&portable_hash_kernels(), &best_hash_kernels()}) {
    const auto sha256 = [&](const std::string& text) {
      Sha256 hash(*kernels);
      hash.update(text);
      sum += hash.digest()[0];
    };
    const double sha_long = seconds_of([&] { sha256(long_text); });
    const double sha_tasks = seconds_of([&] {
      for (int text = 0; text < kTexts; ++text) sha256(task);
    });
    const double crc_long = seconds_of([&] { sum += kernels->crc32c(long_text, 0); });
    const double crc_tasks = seconds_of([&] {
      for (int text = 0; text < kTexts; ++text) sum += kernels->crc32c(task, 0);
    });
    fmt::print("{:12} SHA-256 {:.2f} GB/s, {:.0f} ns of {} bytes; CRC32C {:.2f} GB/s, {:.0f} ns\n",
               kernels->name, kLongBytes / sha_long * 1e-9, sha_tasks / kTexts * 1e9, task.size(),
               kLongBytes / crc_long * 1e-9, crc_tasks / kTexts * 1e9);
  }
  return sum == 0 ? 1 : 0;
}
