// SPDX-License-Identifier: Apache-2.0
//
// Has both tables of kernels, and functions by which the tests of Convoy's CUDA kernels compare
// them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "convoy/model/kernels/registry/op_table.h"
#include "kernel_checks/host_kernels.h"
#include "kernel_checks/op_check.h"

namespace convoy::kernels {

using testing::relative_error;
using testing::sample;
using testing::tolerance;

inline const std::array kTypes = {at::kFloat, at::kBFloat16};

inline const OpTable& own() { return own_kernel_op_table(); }
inline const OpTable& aten() { return aten_op_table(); }

// Copies `tensor` to `offset` elements behind the beginning of a block, so that no aligned vector
// can be read.
inline at::Tensor moved(const at::Tensor& tensor, int64_t offset) {
  at::Tensor block = at::empty({tensor.numel() + offset}, tensor.options());
  return block.narrow(0, offset, tensor.numel()).view(tensor.sizes()).copy_(tensor);
}

inline void expect_close(const at::Tensor& found, const at::Tensor& wanted, int64_t length,
                         const std::string& what) {
  EXPECT_EQ(found.sizes(), wanted.sizes()) << what;
  EXPECT_EQ(found.scalar_type(), wanted.scalar_type()) << what;
  EXPECT_LT(relative_error(found, wanted), tolerance(wanted.scalar_type(), length)) << what;
}

}  // namespace convoy::kernels
