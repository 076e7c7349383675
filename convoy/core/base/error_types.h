// SPDX-License-Identifier: Apache-2.0
//
// The errors that Convoy throws, installed as <convoy/error.h>. what() says what was expected, what
// was found and, where one is known, what to do; code() is the exit code of
// docs/reference/exit-codes.md:
//
//   try {
//     ...
//   } catch (const convoy::Error& error) {
//     std::fprintf(stderr, "%s\n", error.sentence().c_str());
//     return static_cast<int>(error.code());
//   }
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace convoy {

// Public contract: never renumber.
enum class ExitCode : int {
  Done = 0,
  Usage = 2,          // usage or config
  BadInput = 10,      // bad input file
  NoCheckpoint = 11,  // no usable checkpoint
  Resources = 12,     // disk or memory
  PeerLost = 13,      // peer lost or timeout: retry
  Device = 14,        // device fault
  Numeric = 15,       // NaN, Inf, diverged replicas
  NoProgress = 16,    // do not requeue
  Unreachable = 69,   // no network, or a server that does not answer
  Bug = 70,           // a bug in Convoy
  Stopped = 75,       // stopped on request, state saved: requeue
};

// Where an error arose. Empty or negative members are unknown.
struct ErrorLocation {
  std::string file = {};  // path of the file at fault
  int64_t line = 0;       // 1-based
  std::string key = {};   // config key, tensor name, column
  std::string hint = {};  // one action for the user
  int rank = -1;
  int64_t step = -1;
};

// Every error of Convoy is one of the kinds below.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::string kind, const std::string& message, ErrorLocation location = {});
  ExitCode code() const { return code_; }
  // A stable word for scripts: "config", "data", ...
  const std::string& kind() const { return kind_; }
  const ErrorLocation& location() const { return location_; }
  ErrorLocation& location() { return location_; }

  // "file:line: message (hint)", what a person reads.
  std::string sentence() const;
  // {"code","kind","rank","step","file","hint","message"}: the last stderr line of a failed
  // command.
  std::string json_line() const;

 private:
  ExitCode code_;
  std::string kind_;
  ErrorLocation location_;
};

#define CONVOY_ERROR_KIND(Name, code, word)                                \
  class Name : public Error {                                              \
   public:                                                                 \
    explicit Name(const std::string& message, ErrorLocation location = {}) \
        : Error(code, word, message, std::move(location)) {}               \
  }

CONVOY_ERROR_KIND(ConfigError, ExitCode::Usage, "config");
CONVOY_ERROR_KIND(DataError, ExitCode::BadInput, "data");
CONVOY_ERROR_KIND(CheckpointError, ExitCode::NoCheckpoint, "checkpoint");
CONVOY_ERROR_KIND(IoError, ExitCode::Resources, "io");
CONVOY_ERROR_KIND(CommError, ExitCode::PeerLost, "comm");
CONVOY_ERROR_KIND(DeviceError, ExitCode::Device, "device");
CONVOY_ERROR_KIND(NumericError, ExitCode::Numeric, "numeric");
CONVOY_ERROR_KIND(ProgressError, ExitCode::NoProgress, "no_progress");
CONVOY_ERROR_KIND(NetworkError, ExitCode::Unreachable, "network");
CONVOY_ERROR_KIND(StateError, ExitCode::Bug, "bug");
CONVOY_ERROR_KIND(StopRequest, ExitCode::Stopped, "stopped");
#undef CONVOY_ERROR_KIND

}  // namespace convoy
