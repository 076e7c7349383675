// SPDX-License-Identifier: Apache-2.0
//
// Runs child processes from start to end, and returns their output and how they ended.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "convoy/machine/processes/child_process.h"

namespace convoy::processes {

using Seconds = std::chrono::duration<double>;
using TakeText = std::function<void(std::string_view text)>;

// Passes the child's output to `output` and `errors` as it comes, until the child ends. After
// `limit` (0 = never) its group is killed, and this returns true. The child is not reaped. Other
// processes that keep its pipes open are not waited for. Blocks.
bool listen_to(ChildProcess& child, Seconds limit, const TakeText& output, const TakeText& errors);

struct ChildResult {
  ChildEnd end;
  bool timed_out = false;  // killed because it exceeded the limit
  std::string output;
  std::string errors;
};

// Listens to the child until it ends, reaps it, and clears its number in `child`. Blocks.
ChildResult finish_child(ChildProcess& child, Seconds limit = Seconds(0));

// Runs a program to its end, with `input` on its stdin unless that is empty. Blocks. Throws as
// start_child().
ChildResult run_child(ChildStart start, const std::string& input = "", Seconds limit = Seconds(0));

}  // namespace convoy::processes
