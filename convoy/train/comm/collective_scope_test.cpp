// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/collective_scope.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace convoy::comm {
namespace {

std::string told(const std::function<void()>& fault) {
  telemetry::FlightWriter flight;
  GroupCollectives collectives(flight, /*rank=*/1, /*size=*/4, "world");
  try {
    collectives.enter("join").finish(fault);
  } catch (const CommError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(CollectiveScope, TellsEveryLineOfALibrarysErrorOnOne) {
  EXPECT_EQ(
      told([] {
        throw std::runtime_error("NCCL: unhandled error\n  Last error:\r\n\nno memory\n");
      }),
      "rank 1 of 4: join #0 on group world failed: NCCL: unhandled error; Last error:; no memory");
  EXPECT_EQ(told([] { throw std::runtime_error("closed"); }),
            "rank 1 of 4: join #0 on group world failed: closed");
  EXPECT_EQ(told([] { TORCH_CHECK(false, "connect timeout\nto rank 3"); }),
            "rank 1 of 4: join #0 on group world failed: connect timeout; to rank 3");
}

TEST(CollectiveScope, LeavesConvoysOwnErrorsAsTheyAre) {
  EXPECT_EQ(told([] { throw CommError("the peer said no"); }), "the peer said no");
}

}  // namespace
}  // namespace convoy::comm
