// SPDX-License-Identifier: Apache-2.0
//
// Convoy for LibTorch programs: all of it. Installed as <convoy/convoy.h>.
#pragma once

#include "convoy/library/checkpoint_folder.h"
#include "convoy/library/data_parallel.h"
#include "convoy/library/distributed_data_parallel.h"
#include "convoy/library/distributed_sampler.h"
#include "convoy/library/fully_sharded_data_parallel.h"
#include "convoy/library/performance_profiler.h"
#include "convoy/library/process_group.h"
#include "convoy/library/unit.h"
#include "convoy/library/zero_optimizer.h"
