// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/work.h"

#include <ATen/ATen.h>

#include <exception>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/started_work.h"

namespace convoy {
namespace detail {

at::Tensor StartedWork::wait() {
  const at::NoGradGuard no_grad;
  if (collective) collective->wait();
  if (in_place && dense.data_ptr() != result.data_ptr())
    result.copy_(dense);
  else
    result.unsafeGetTensorImpl()->bump_version();  // the backend writes without counting a version
  if (divisor > 1) result.div_(divisor);
  return result;
}

}  // namespace detail

Work::Work(std::unique_ptr<State> state) : state_(std::move(state)) {}
Work::Work(Work&&) noexcept = default;

Work::~Work() {
  if (state_ == nullptr || std::uncaught_exceptions() > 0) return;
  const auto group = state_->group;
  try {
    wait();
  } catch (const std::exception&) {
    group->group->abort();
  }
}

at::Tensor Work::wait() {
  if (state_ == nullptr)
    throw ConfigError("this collective was waited for already",
                      {.hint = "call wait() once, and keep what it returns"});
  const std::unique_ptr<State> state = std::move(state_);
  state->agreed.settle();
  return state->started.wait();
}

}  // namespace convoy
