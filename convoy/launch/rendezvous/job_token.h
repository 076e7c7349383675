// SPDX-License-Identifier: Apache-2.0
//
// The secret that everybody who may join a job holds. It is never sent: both sides of a connection
// prove that they have it (handshake.h). It can not be printed or formatted.
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
  // belong to this user (or root) and be closed to everybody else. With neither set the key comes
  // from `run_id`: then guessable() is true, and whoever reaches the port can join. Throws
  // ConfigError.
  static JobToken from_environment(std::string_view run_id);

  static JobToken from_secret(std::string_view secret);  // throws ConfigError when it is too short
  static JobToken from_file(const std::filesystem::path& path);  // throws ConfigError
  static JobToken from_run_id(std::string_view run_id);

  // 32 random bytes as text: a token for a job that stays on machines reached by this launcher.
  static std::string new_secret();

  // No secret was given: say so loudly where a port beyond loopback is opened.
  bool guessable() const { return guessable_; }
  static constexpr std::string_view kGuessableWarning =
      "no job token is set (CONVOY_JOB_TOKEN or CONVOY_JOB_TOKEN_FILE): whoever reaches the "
      "rendezvous port can join this job by its run id, which is `none` unless --rdzv-id or the "
      "scheduler says another";

  // The key of HMAC-SHA256: 32 bytes.
  const std::string& key() const { return key_; }

  // What goes into CONVOY_JOB_TOKEN of a convoy-worker so that from_environment there yields this
  // token. Secret: into an environment only, never into argv, a log or a file.
  std::string for_worker() const;

 private:
  JobToken(std::string key, bool guessable);

  std::string key_;
  bool guessable_;
};

}  // namespace convoy::rendezvous
