// SPDX-License-Identifier: Apache-2.0
//
// Progress of a fetch or a push.
#pragma once

#include <atomic>
#include <cstdint>

namespace convoy::hub {

// The threads of the transfer write it, and the display reads it.
struct TransferAmount {
  std::atomic<int64_t> total_bytes = 0;  // 0 until it is known
  std::atomic<int64_t> start_bytes = 0;  // bytes that an earlier transfer has moved
  std::atomic<int64_t> done_bytes = 0;
  std::atomic<int64_t> total_files = 0;
  std::atomic<int64_t> done_files = 0;
};

struct TransferProgress : TransferAmount {
  TransferAmount hashing;  // before a push: the files here
};

}  // namespace convoy::hub
