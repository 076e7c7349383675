// SPDX-License-Identifier: Apache-2.0
//
// Tests whether the ranks of a job can reach each other, and measures an all-reduce between them:
// the part of `convoy doctor` that needs LibTorch.
#pragma once

#include <cstdint>
#include <string>

namespace convoy::recipes {

struct RanksCheckFlags {
  std::string output_folder;
  std::string devices = "cpu";
  int64_t gpus = 0;
  double limit = 20;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("output_folder", output_folder, "folder for the figures of each rank, rank-R.json");
    visit("devices", devices, "cpu or cuda: Gloo or NCCL");
    visit("gpus", gpus, "GPUs that ranks of this host can use, sent to the others");
    visit("limit", limit, "seconds to reach the others, and for each collective").at_least(1);
  }
};

// Collective. Blocks. Throws CommError, DeviceError, IoError.
void check_ranks(const RanksCheckFlags& flags);

}  // namespace convoy::recipes
