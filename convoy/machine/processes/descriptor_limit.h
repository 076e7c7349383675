// SPDX-License-Identifier: Apache-2.0
//
// The limit of this process's open descriptors, raised for as long as the object lives: some
// systems start programs with a limit of 256, and this process needs half a dozen descriptors for
// each rank.
#pragma once

#include <sys/resource.h>

namespace convoy::processes {

class DescriptorLimit {
 public:
  // Throws IoError when not even the hard limit allows for `num_ranks` ranks.
  explicit DescriptorLimit(int num_ranks);
  static rlim_t needed(int num_ranks);
  ~DescriptorLimit();  // restores the limit
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  // The limit for ranks: programs that use select() fail with numbers above 1024.
  const rlimit& before() const { return before_; }

 private:
  rlimit before_{};
};

}  // namespace convoy::processes
