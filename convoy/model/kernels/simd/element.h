// SPDX-License-Identifier: Apache-2.0
//
// Selects the element type of the inner loops by a tensor's dtype, and splits work over threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/BFloat16.h>

#include <cstdint>
#include <functional>

namespace convoy::kernels {

// Throws StateError unless `tensor` is an fp32 or bf16 CPU tensor; `op` names the caller.
void require_supported(const at::Tensor& tensor, const char* op);

// Calls body(Element{}) with float or at::BFloat16.
template <class Body>
void with_element(const at::Tensor& tensor, const char* op, Body&& body) {
  require_supported(tensor, op);
  if (tensor.scalar_type() == at::kFloat) return body(float{});
  body(at::BFloat16{});
}

// Work is counted in multiplications of a matrix product. An element that is read, changed and
// written costs as much as this many of them.
inline constexpr int64_t kWorkOfElement = 32;
// Reading a matrix costs as much as multiplying it by this many rows.
inline constexpr int64_t kRowsOfReading = 4;
// Work of no more than this stays on the thread that has it: handing it out and waiting for the
// last thread costs about as much as a second thread saves, and far more where the second thread
// shares its core with other work.
inline constexpr int64_t kSerialWork = 1 << 19;

// Calls body(begin, end) over rows in parallel, in parts that are long enough to pay for a thread.
void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& body);

// Runs body(task) for every task, each thread taking the next one when it is free. The tasks have
// `work` together. `make_body` is called once per thread, so the body may own scratch memory.
using TaskBody = std::function<void(int64_t)>;
void for_tasks(int64_t tasks, int64_t work, const std::function<TaskBody()>& make_body);

// The same for tasks that read memory one after the other: a thread takes neighbours as long as its
// share lasts, so that the hardware goes on fetching ahead, and then helps other threads.
void for_neighbouring_tasks(int64_t tasks, int64_t work,
                            const std::function<TaskBody()>& make_body);

}  // namespace convoy::kernels
