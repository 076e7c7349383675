// SPDX-License-Identifier: Apache-2.0
//
// Includes all of Convoy for LibTorch programs. Installed as <convoy/convoy.h>. All names are in
// namespace convoy; `detail` in it is private.
//
// Convoy throws convoy::Error (<convoy/error.h>): what() says what was expected, what was found and
// what to do; code() is the exit code that run_rank() ends with. LibTorch's own functions throw
// c10::Error as ever.
#pragma once

#include "convoy/core/base/error_types.h"
#include "convoy/library/checkpoint.h"
#include "convoy/library/ddp.h"
#include "convoy/library/dp.h"
#include "convoy/library/fsdp.h"
#include "convoy/library/no_sync.h"
#include "convoy/library/process_group.h"
#include "convoy/library/profiler.h"
#include "convoy/library/sampler.h"
#include "convoy/library/work.h"
#include "convoy/library/zero.h"
