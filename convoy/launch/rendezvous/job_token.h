// SPDX-License-Identifier: Apache-2.0
//
// The secret shared by all members of a job. It is never sent: both sides of a connection prove
// that they have it (handshake.h). It cannot be printed or formatted.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "convoy/core/base/secret_variables.h"

namespace convoy::rendezvous {

class JobToken {
 public:
  static constexpr const char* kVariable = kJobTokenVariable;
  static constexpr const char* kFileVariable = kJobTokenFileVariable;

  // From CONVOY_JOB_TOKEN, or else from the file that CONVOY_JOB_TOKEN_FILE names, which must
  // belong to this user (or root) and give other users no access. With neither set the key comes
  // from `run_id`: then guessable() is true, and every program that reaches the port can join.
  // Throws ConfigError.
  static JobToken from_environment(std::string_view run_id);

  static JobToken from_secret(std::string_view secret);  // throws ConfigError when it is too short
  static JobToken from_file(const std::filesystem::path& path);  // throws ConfigError
  static JobToken from_run_id(std::string_view run_id);

  // 32 random bytes as text: a token for a job that stays on machines reached by this launcher.
  static std::string new_secret();

  // True when no secret was given: print a warning before a port beyond loopback is opened.
  bool guessable() const { return guessable_; }
  static constexpr std::string_view kGuessableWarning =
      "no job token is set (CONVOY_JOB_TOKEN or CONVOY_JOB_TOKEN_FILE): every program that reaches "
      "the rendezvous port can join this job by its run id, which is `none` unless --rdzv-id or "
      "the scheduler sets another";

  // The key of HMAC-SHA256: 32 bytes.
  const std::string& key() const { return key_; }

  // The value for CONVOY_JOB_TOKEN of a convoy-worker, whose from_environment() makes this token
  // from it. Secret: put it into an environment only, never into argv, a log or a file.
  std::string for_worker() const;

 private:
  JobToken(std::string key, bool guessable);

  std::string key_;
  bool guessable_;
};

}  // namespace convoy::rendezvous
