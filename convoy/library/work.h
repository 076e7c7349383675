// SPDX-License-Identifier: Apache-2.0
//
// A collective that goes on while its rank computes:
//
//   auto sum = group->start_all_reduce(values);
//   ...                                          // does not touch `values`
//   sum.wait();                                  // from here on they are the sums
#pragma once

#include <torch/types.h>

#include <memory>

namespace convoy {
namespace detail {
struct WorkAccess;
}

// Returned by a start_ function of a ProcessGroup. Until wait() its tensors must be neither read
// nor written. All ranks must start their collectives in the same order; they may wait for them in
// any order.
//
// A collective of CPU tensors runs on threads of the backend. A collective of GPU tensors runs on a
// stream of the group, after the work that the current stream had when the collective was started.
class Work {
 public:
  Work(Work&&) noexcept;
  Work& operator=(Work&&) = delete;
  // Waits if wait() was not called. An error then makes the group unusable: its next call throws.
  ~Work();

  // Returns the result: the given tensor for start_all_reduce, else a new tensor. For CPU tensors
  // it blocks until the collective is done. For GPU tensors it blocks until every rank has started
  // the collective; the current stream then waits for the rest. Throws CommError, also when ranks
  // have started different collectives. Call it once.
  torch::Tensor wait();

 private:
  friend struct detail::WorkAccess;
  struct State;
  explicit Work(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;  // nullptr after wait() or a move
};

}  // namespace convoy
