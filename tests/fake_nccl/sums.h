// SPDX-License-Identifier: Apache-2.0
//
// Reduces numbers of an ncclDataType_t by an ncclRedOp_t.
#pragma once

#include <cstddef>
#include <vector>

namespace fake_nccl {

// Returns the bytes of a number of this ncclDataType_t, or 0 for a type that is unknown or has no
// sum here.
size_t bytes_of_type(int type);

constexpr int kSum = 0, kMax = 2, kMin = 3;

// Reduces the buffers `from`, in their order, into `to`. Each buffer has `count` numbers.
void reduce(int type, int operation, const std::vector<const char*>& from, size_t count, char* to);

}  // namespace fake_nccl
