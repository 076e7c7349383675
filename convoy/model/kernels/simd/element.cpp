// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/element.h"

#include <atomic>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::kernels {
namespace {

int64_t workers_for(int64_t tasks, int64_t work) {
  return std::min<int64_t>(tasks, work <= kSerialWork ? 1 : at::get_num_threads());
}

}  // namespace

void require_supported(const at::Tensor& tensor, const char* op) {
  const bool known = tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16;
  CONVOY_INVARIANT(known && tensor.device().is_cpu(),
                   "{} needs fp32 or bf16 on the CPU, found {} on {}", op,
                   c10::toString(tensor.scalar_type()), tensor.device().str());
}

void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& body) {
  constexpr int64_t kElementsPerPart = kSerialWork / kWorkOfElement;
  at::parallel_for(0, rows, std::max<int64_t>(1, kElementsPerPart / std::max<int64_t>(width, 1)),
                   body);
}

void for_tasks(int64_t tasks, int64_t work, const std::function<TaskBody()>& make_body) {
  std::atomic<int64_t> next{0};
  const int64_t workers = workers_for(tasks, work);
  at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    const TaskBody body = make_body();
    for (int64_t task = next++; task < tasks; task = next++) body(task);
  });
}

void for_neighbouring_tasks(int64_t tasks, int64_t work,
                            const std::function<TaskBody()>& make_body) {
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  const int64_t workers = workers_for(tasks, work);
  std::vector<Share> shares(workers);
  for (int64_t worker = 0; worker < workers; ++worker) {
    shares[worker].next = worker * tasks / workers;
    shares[worker].end = (worker + 1) * tasks / workers;
  }
  at::parallel_for(0, workers, 1, [&](int64_t first, int64_t) {
    const TaskBody body = make_body();
    for (int64_t at = 0; at < workers; ++at) {
      Share& share = shares[(first + at) % workers];
      for (int64_t task = share.next++; task < share.end; task = share.next++) body(task);
    }
  });
}

}  // namespace convoy::kernels
