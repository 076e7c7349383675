// SPDX-License-Identifier: Apache-2.0
//
// torchrun's folder of one run: LOG_DIR/RUN-ID_xxxxxx, in which rank_files.h makes
// attempt_N/LOCAL_RANK. The folder stays: nothing here is removed at the end.
#pragma once

#include <filesystem>
#include <string_view>

namespace convoy::launch {

// Makes LOG_DIR (empty: torchelastic_xxxxxx in the folder for temporary files) and the run's folder
// in it, mode 0700. Throws IoError.
std::filesystem::path make_run_logs(const std::filesystem::path& log_dir, std::string_view run_id);

}  // namespace convoy::launch
