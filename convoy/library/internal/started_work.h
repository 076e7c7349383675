// SPDX-License-Identifier: Apache-2.0
//
// A collective under way, with what is left to do once it is done.
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
  at::Tensor dense;        // contiguous: this rank's part
  at::Tensor result = {};  // for wait() to return
  bool in_place = false;   // the result comes to be in `dense`, which may be the same memory
  std::unique_ptr<comm::Work> collective = nullptr;  // null: it is done
  int divisor = 1;

  at::Tensor wait();  // see wait() of a collective
};

}  // namespace detail

struct Work::State {
  std::shared_ptr<detail::GroupAccess::Internal> group;  // outlives the rest
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
