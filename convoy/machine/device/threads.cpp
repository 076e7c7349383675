// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_cpus.h"

namespace convoy::device {
namespace {

int threads_of_user() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  const std::string_view view(text);
  int number = 0;
  // OpenMP allows a list, one number per nesting level; the first counts here.
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), number);
  return error == std::errc() && number > 0 ? number : 0;
}

}  // namespace

int share_cpu_threads(int ranks_on_host, int replicas) {
  CONVOY_INVARIANT(ranks_on_host > 0, "{} ranks on this host", ranks_on_host);
  const int asked = threads_of_user();
  const int number = std::max(1, asked > 0 ? asked / replicas : usable_cpus() / ranks_on_host);
  at::set_num_threads(number);
  return number;
}

}  // namespace convoy::device
