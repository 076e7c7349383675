// SPDX-License-Identifier: Apache-2.0
//
// Group over c10d's Gloo backend, for CPU tensors. Connections are made eagerly, all to all: with lazy ones a peer that died
// before its first message is noticed only by timeout.
#pragma once

#include <sys/types.h>

#include "convoy/comm/group.h"
#include "convoy/comm/passage.h"

namespace convoy::comm {

class GlooGroup : public Group {
 public:
  // Collective. Blocks. Throws CommError.
  GlooGroup(std::shared_ptr<Meeting> meeting, std::chrono::seconds timeout);
  ~GlooGroup()
      override;  // while an exception unwinds: abort() first, for c10d would wait for its pending work
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Work> start_all_reduce_sum(at::Tensor tensor) override;
  void broadcast(at::Tensor tensor, int root) override;
  std::vector<std::string> all_gather_bytes(std::string_view bytes) override;
  void barrier() override;
  void wait_for_all() override;
  void abort() override;
  double waited_seconds() const override { return passages_.waited_seconds(); }

 private:
  struct Backend;  // keeps c10d's and Gloo's headers in one source file

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  int size_;
  Passages passages_;
  int exceptions_at_start_;
  bool aborted_ = false;
  std::unique_ptr<Backend> backend_;
};

}  // namespace convoy::comm
