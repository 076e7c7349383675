// SPDX-License-Identifier: Apache-2.0
//
// A started collective, and the steps that remain when it is done.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

#include "convoy/library/internal/agreed_call.h"
#include "convoy/library/internal/group_internal.h"
#include "convoy/library/work.h"
#include "convoy/train/comm/group.h"

namespace convoy {
namespace detail {

struct StartedWork {
  at::Tensor dense;        // this rank's part, contiguous
  at::Tensor result = {};  // the tensor that wait() returns
  bool in_place = false;   // true: the collective writes the result into `dense`
  std::unique_ptr<comm::Work> collective = nullptr;  // nullptr: nothing to wait for
  int divisor = 1;

  at::Tensor wait();  // blocks as comm::Work::wait() does, then finishes `result`
};

}  // namespace detail

struct Work::State {
  std::shared_ptr<detail::GroupAccess::Internal> group;  // must outlive the other members
  detail::AgreedCall agreed;
  detail::StartedWork started;
};

namespace detail {

struct WorkAccess {
  static Work make(std::shared_ptr<GroupAccess::Internal> group, AgreedCall agreed,
                   StartedWork started) {
    return Work(std::make_unique<Work::State>(
        Work::State{std::move(group), std::move(agreed), std::move(started)}));
  }
};

}  // namespace detail
}  // namespace convoy
