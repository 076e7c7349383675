// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/process_pool.h"

#include <gtest/gtest.h>

namespace convoy::processes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

PoolOptions shell(const std::string& script) {
  PoolOptions options;
  options.command = {"/bin/sh", "-c", script};
  sigemptyset(&options.signals);
  return options;
}

TEST(ProcessPool, LineWithoutAnEndComesInPieces) {
  constexpr size_t kBytes = 4'000'000;
  ProcessPool pool(shell("head -c 4000000 /dev/zero >&2; exec sleep 60"));
  pool.start_missing(1);
  size_t seen_bytes = 0;
  const auto until = std::chrono::steady_clock::now() + seconds(30);
  // The pool may hold back a text without a line end, up to the limit of a line.
  while (seen_bytes + (64 << 10) < kBytes && std::chrono::steady_clock::now() < until)
    for (const ProcessNews::Line& line : pool.wait(milliseconds(100), -1).errors) {
      EXPECT_LE(line.text.size(), size_t{2 << 20});
      seen_bytes += line.text.size();
    }
  EXPECT_GE(seen_bytes + (64 << 10), kBytes);
  EXPECT_EQ(pool.running(), 1);
}

}  // namespace
}  // namespace convoy::processes
