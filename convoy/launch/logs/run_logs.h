// SPDX-License-Identifier: Apache-2.0
//
// torchrun's folder of one run: LOG_DIR/RUN-ID_xxxxxx/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,
// error.json}. The folder stays: nothing here is removed at the end.
#pragma once

#include <filesystem>
#include <string_view>

namespace convoy::launch {

class RunLogs {
 public:
  // Makes LOG_DIR (empty: torchelastic_xxxxxx in the folder for temporary files) and the run's
  // folder in it, mode 0700. Throws IoError.
  RunLogs(const std::filesystem::path& log_dir, std::string_view run_id);

  const std::filesystem::path& path() const { return path_; }
  // The folders of all local ranks; what an earlier attempt of this number left is removed.
  // False when that can not be done: then error files need another place.
  bool make_attempt(int attempt, int num_local_ranks) const;

  std::filesystem::path attempt_folder(int attempt) const;
  std::filesystem::path rank_folder(int attempt, int local_rank) const;
  std::filesystem::path error_file(int attempt, int local_rank) const;

 private:
  std::filesystem::path path_;
};

}  // namespace convoy::launch
