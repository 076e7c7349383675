// SPDX-License-Identifier: Apache-2.0
//
// The factors A and B of a model's adapters in the type of its products. When a factor is used
// after it changed, all factors that changed are rounded together, in one or two launches instead
// of two for each adapter. One thread at a time. Shapes: I inputs, O outputs, R rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

namespace convoy::adapters {

class RoundedFactors {
 public:
  struct Pair {
    at::Tensor a_RI;
    at::Tensor b_OR;
  };

  // Adds the leaves of one adapter and returns its number. The factors of adapters that were added
  // one after another are neighbours in memory.
  size_t add(at::Tensor a_RI, at::Tensor b_OR);

  const Pair& of(size_t number, at::ScalarType dtype);

 private:
  struct Slot {
    Pair leaves;
    Pair rounded = {};
    std::array<int64_t, 2> versions = {};  // versions of the leaves when they were rounded

    bool is_current(at::ScalarType dtype) const;
  };
  void round_changed(at::ScalarType dtype);
  void place_anew(const std::vector<at::Tensor*>& rounded, const std::vector<at::Tensor>& like,
                  at::ScalarType dtype);

  std::vector<Slot> slots_;
  at::Tensor memory_;  // memory of the factors that were placed last
};

// Stacks the matrices, which have equal numbers of columns, one below the other. The result is a
// view if they are already neighbours in memory.
at::Tensor stacked_rows(const std::vector<at::Tensor>& parts);

}  // namespace convoy::adapters
