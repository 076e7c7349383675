// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/usable_cpus.h"

namespace convoy::device {

int chosen_threads() {
  const std::string text = environment_text("OMP_NUM_THREADS");
  int number = 0;
  // OpenMP allows a list, one number per nesting level; the first counts here.
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number > 0 ? number : 0;
}

int share_cpu_threads(int ranks_on_host, int replicas) {
  CONVOY_INVARIANT(ranks_on_host > 0, "{} ranks on this host", ranks_on_host);
  const int asked = chosen_threads();
  const int number = std::max(1, asked > 0 ? asked / replicas : usable_cpus() / ranks_on_host);
  at::set_num_threads(number);
  return number;
}

FreeCoreThreads::FreeCoreThreads(int ranks_on_host) {
  if (ranks_on_host == 1 && chosen_threads() == 0 && usable_cpus() > 1) watch_.emplace();
}

std::string FreeCoreThreads::take() {
  if (!watch_) return {};
  const std::optional<double> busy = watch_->busy_cores();
  watch_.reset();
  if (!busy) return {};
  const auto cores = static_cast<int>(allowed_cpus().size());
  const int number = free_cores(cores, cpu_quota(), *busy);
  if (number >= at::get_num_threads()) return {};
  at::set_num_threads(number);
  return fmt::format(
      "{} (of {}; {:.1f} are busy with other work): --threads N takes another number",
      counted(number, "thread"), counted(cores, "core"), *busy);
}

std::string FreeCoreThreads::keep() const { return watch_ ? too_many_threads(*watch_) : ""; }

std::string too_many_threads(const OtherWork& others) {
  const auto cores = static_cast<int>(allowed_cpus().size());
  const std::optional<double> busy = others.busy_cores();
  if (!busy) return {};
  const int free = free_cores(cores, cpu_quota(), *busy);
  if (free >= at::get_num_threads()) return {};
  return fmt::format(
      "{:.1f} of {} are busy with other work, and {} compute here, each of which waits for the "
      "slowest: --threads {} may be faster",
      *busy, counted(cores, "core"), counted(at::get_num_threads(), "thread"), free);
}

}  // namespace convoy::device
