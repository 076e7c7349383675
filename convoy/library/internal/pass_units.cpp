// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/pass_units.h"

#include "convoy/core/base/error.h"
#include "convoy/library/internal/told_in_backward.h"

namespace convoy::detail {

void PassUnits::acquire(size_t unit) {
  if (unit == 0) in_forward_ = true;
  if (!in_forward_ && !all_whole_ && backward_pass() == -1)
    throw ConfigError(
        fmt::format("{} is a unit of a sharded module, and was called outside of its wrapper",
                    tree_.units[unit].name),
        {.hint =
             "call the FullyShardedDataParallel, or the module within with_whole_parameters()"});
  if (!all_whole_) use(unit);
}

// Gathers that do not fit fail: the other ranks may have come to another unit.
void PassUnits::use(size_t unit) {
  if (units_.travels(unit)) gathered_.push_back(unit);
  try {
    units_.acquire(unit);
  } catch (const CommError& error) {
    throw CommError(
        fmt::format("{}, as this rank came to the unit {}", error.what(), tree_.units[unit].name),
        {.hint = error.location().hint, .rank = error.location().rank});
  }
}

void PassUnits::release(size_t unit) {
  if (unit == 0) in_forward_ = false;
  if (!all_whole_) units_.release(unit);
}

void PassUnits::end_pass() {
  units_.end_pass();
  all_whole_ = for_body_ || for_backward_;
  if (!all_whole_) return;
  for (size_t unit = 0; unit < tree_.units.size(); ++unit) units_.acquire(unit);
}

void PassUnits::keep_rest() {
  if (!all_whole_) use(0);
}

}  // namespace convoy::detail
