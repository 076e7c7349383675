// SPDX-License-Identifier: Apache-2.0
//
// Reads tensors of a device in pieces for a file, beside other work of the device.
#include "convoy/machine/device/piece_reader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "simulated_device/simulated_device.h"

namespace convoy::device {
namespace {

class PieceReaderOnTheDevice : public ::testing::Test {
 protected:
  PieceReaderOnTheDevice() { simulated::install(2); }
  static constexpr int64_t kPieceBytes = 256;
};

TEST_F(PieceReaderOnTheDevice, PassesAllBytesInPieces) {
  PieceReader reader(kPieceBytes);
  for (const int64_t rows : {0, 1, 8, 16, 17, 40}) {
    const at::Tensor host = at::arange(rows * 12, at::kFloat).view({12, rows}).t();
    const at::Tensor tensor = host.to(simulated::device(1));
    std::vector<std::byte> found;
    simulated::reset_host_waits();
    reader.read(tensor, [&](std::span<const std::byte> piece) {
      EXPECT_LE(std::ssize(piece), kPieceBytes);
      found.insert(found.end(), piece.begin(), piece.end());
    });
    for (const simulated::HostWait& wait : simulated::host_waits()) EXPECT_EQ(wait.kind, "event");
    const at::Tensor wanted = host.contiguous();
    ASSERT_EQ(found.size(), wanted.nbytes());
    EXPECT_TRUE(rows == 0 || std::memcmp(found.data(), wanted.const_data_ptr(), found.size()) == 0);
  }
  EXPECT_TRUE(simulated::take_findings().empty());
}

// The simulated device detects a change of a tensor that comes too early, at whatever time it runs.
TEST_F(PieceReaderOnTheDevice, AnUpdateBeforeTheLastPieceIsFound) {
  PieceReader reader(kPieceBytes);
  const at::Tensor tensor = at::ones({200}, at::kFloat).to(simulated::device(0));
  int pieces = 0;
  reader.read(tensor, [&](std::span<const std::byte>) {
    if (++pieces > 1) return;
    EXPECT_THROW(tensor.add_(1), c10::Error);
  });
  EXPECT_EQ(pieces, 4);
  EXPECT_NO_THROW(tensor.add_(1));
}

}  // namespace
}  // namespace convoy::device
