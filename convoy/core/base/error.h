// SPDX-License-Identifier: Apache-2.0
//
// The one error hierarchy (error_types.h) and the checks that throw it. A thrown error says what
// was expected, what was found and what to do; programs in apps/ turn it into one human sentence,
// one JSON line and the exit code of the public contract (docs/reference/exit-codes.md).
#pragma once

#include <fmt/format.h>

#include "convoy/core/base/error_types.h"

namespace convoy {

// The same codes as integers, for comparison with exit statuses of processes.
inline constexpr int kPeerLost = static_cast<int>(ExitCode::PeerLost);
inline constexpr int kStopped = static_cast<int>(ExitCode::Stopped);

}  // namespace convoy

// For input and environment: CONVOY_CHECK(cond, DataError, "wanted {} found {}", a, b).
#define CONVOY_CHECK(cond, Kind, ...)                              \
  do {                                                             \
    if (!(cond)) throw ::convoy::Kind(::fmt::format(__VA_ARGS__)); \
  } while (false)

// For our own bugs. Release builds check it too.
#define CONVOY_INVARIANT(cond, ...)                                                               \
  do {                                                                                            \
    if (!(cond))                                                                                  \
      throw ::convoy::StateError(                                                                 \
          ::fmt::format("{}:{}: {}: {}", __FILE__, __LINE__, #cond, ::fmt::format(__VA_ARGS__))); \
  } while (false)
