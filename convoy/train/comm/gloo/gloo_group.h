// SPDX-License-Identifier: Apache-2.0
//
// Group over c10d's Gloo backend, for CPU tensors. Connections are made eagerly, all to all: with
// lazy connections a peer that died before its first message is noticed only by timeout.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "convoy/train/comm/backend/backend_group.h"

namespace convoy::comm {

class GlooGroup : public BackendGroup {
 public:
  // Collective. Blocks until every rank is connected to every other. Throws CommError.
  GlooGroup(std::shared_ptr<StoreBarrier> store_barrier, std::chrono::seconds timeout);
  // While an exception unwinds the stack, call abort() first: otherwise the destructor of c10d's
  // backend waits for its pending work.
  ~GlooGroup() override;
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  void wait_for_all() override;
  void abort() override;
  std::unique_ptr<Group> split(int color, std::string_view name) override;
  c10::intrusive_ptr<c10d::Backend> c10d_backend() override;

 private:
  struct Backend;  // keeps c10d's and Gloo's headers in one source file
  struct Part {    // this group's part of the job's ranks
    int rank;
    int size;
    std::string_view name;
    std::string keys;  // prefix of its keys in the job's store; empty: none
  };
  GlooGroup(std::shared_ptr<StoreBarrier> store_barrier, const Part& part,
            std::chrono::seconds timeout, GlooGroup* whole);
  void await(c10d::Work& work) override;
  c10d::Backend& backend() override;
  void join(const std::string& keys);
  void leave_broken();

  std::shared_ptr<StoreBarrier> store_barrier_;
  const std::chrono::seconds timeout_;
  int exceptions_at_start_;
  std::atomic<bool> aborted_ = false;
  GlooGroup* const whole_;         // group that this one was split from; null: none
  const std::string keys_;         // see Part; keys of this group's own parts begin with it
  std::mutex parts_mutex_;         // abort() may be called on any thread
  std::vector<GlooGroup*> parts_;  // split from this one and alive
  int splits_ = 0;
  std::unique_ptr<Backend> backend_;
};

// A Gloo backend of this process alone.
c10::intrusive_ptr<c10d::Backend> gloo_of_one();

}  // namespace convoy::comm
