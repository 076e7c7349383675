// SPDX-License-Identifier: Apache-2.0
//
// torchrun's worker environment (launch.md section 2) for the ranks of one host.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace convoy::launch {

struct WorkerPlace {
  int rank = 0;
  int num_ranks = 1;
  int master_port = 0;
  std::string run_id;
  std::filesystem::path store_file;
  std::filesystem::path error_file;
};

std::map<std::string, std::string> worker_environment(const WorkerPlace& place);

// A TCP port that was free on loopback a moment ago. Throws IoError.
int free_port();

// Random, for names of runs: 16 hexadecimal digits.
std::string new_run_id();

}  // namespace convoy::launch
