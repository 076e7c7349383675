// SPDX-License-Identifier: Apache-2.0
//
// Parts of the CPU's paged attention.
#pragma once

#include "convoy/model/kernels/attention/attention.h"
#include "convoy/model/kernels/paged_attention/paged_cache.h"
#include "convoy/model/kernels/paged_attention/paged_rows.h"

namespace convoy::kernels::paged {

void store(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
           const PagedRows& rows);

at::Tensor attend(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                  const AttentionConfig& config);

}  // namespace convoy::kernels::paged
