// SPDX-License-Identifier: Apache-2.0
//
// One fetch or push beside its progress bar and the signals.
#pragma once

#include <functional>
#include <string>

#include "convoy/apps/front/command.h"
#include "convoy/data/hub/hub_requests.h"
#include "convoy/data/hub/transfer_progress.h"

namespace convoy::apps {

using Transfer = std::function<void(const hub::StopTest& stop, hub::TransferProgress& progress)>;

// Blocks. Runs `transfer` on a thread of its own, and shows the progress of its hashing and its
// bytes. Returns false when a signal ended it. Throws what
// `transfer` throws otherwise.
bool run_transfer(const Context& context, const std::string& label, bool shows_progress,
                  const Transfer& transfer);

}  // namespace convoy::apps
