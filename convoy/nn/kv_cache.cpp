// SPDX-License-Identifier: Apache-2.0
#include "convoy/nn/kv_cache.h"

#include <algorithm>

#include "convoy/base/error.h"
#include "convoy/kernels/ops/op_table.h"

namespace convoy::nn {
namespace {

constexpr int64_t kFirstCapacityTokens = 64;

}  // namespace

KvCache::KvCache(int64_t num_layers, int64_t num_kv_heads, int64_t head_dim,
                 at::TensorOptions options)
    : num_layers_(num_layers),
      num_kv_heads_(num_kv_heads),
      head_dim_(head_dim),
      options_(options) {}

KvCache::Row& KvCache::row(int64_t slot) {
  CONVOY_INVARIANT(slot >= 0 && slot < static_cast<int64_t>(rows_.size()) && rows_[slot].used,
                   "the cache has no row {}", slot);
  return rows_[slot];
}

void KvCache::reserve(Row& row, int64_t tokens) const {
  if (tokens <= row.capacity) return;
  const int64_t capacity = std::max({kFirstCapacityTokens, 2 * row.capacity, tokens});
  for (int64_t layer = 0; layer < num_layers_; ++layer) {
    for (auto* stored : {&row.keys_CKE[layer], &row.values_CKE[layer]}) {
      at::Tensor grown = at::empty({capacity, num_kv_heads_, head_dim_}, options_);
      if (row.lengths[layer] > 0)
        kernels::op_table(grown).token_copy.copy(*stored, 0, row.lengths[layer], grown, 0);
      *stored = grown;
    }
  }
  row.capacity = capacity;
}

std::vector<kernels::CachedRow> KvCache::append(int64_t layer, const at::Tensor& k_TKE,
                                                const at::Tensor& v_TKE,
                                                const kernels::RowIndex& rows) {
  CONVOY_INVARIANT(rows.num_rows() == static_cast<int64_t>(slots_.size()), "{} rows for {} slots",
                   rows.num_rows(), slots_.size());
  CONVOY_INVARIANT(k_TKE.dtype() == options_.dtype() && k_TKE.device() == options_.device() &&
                       k_TKE.size(1) == num_kv_heads_ && k_TKE.size(2) == head_dim_ &&
                       k_TKE.sizes() == v_TKE.sizes(),
                   "keys or values do not fit the cache");
  const at::Tensor k = k_TKE.contiguous();
  const at::Tensor v = v_TKE.contiguous();
  std::vector<kernels::CachedRow> history;
  history.reserve(slots_.size());
  for (size_t r = 0; r < slots_.size(); ++r) {
    Row& stored = row(slots_[r]);
    int64_t& length = stored.lengths[layer];
    const int64_t begin = rows.begin(static_cast<int64_t>(r));
    const int64_t added = rows.length(static_cast<int64_t>(r));
    reserve(stored, length + added);
    at::Tensor& keys = stored.keys_CKE[layer];
    at::Tensor& values = stored.values_CKE[layer];
    const kernels::TokenCopyOps& ops = kernels::op_table(keys).token_copy;
    ops.copy(k, begin, begin + added, keys, length);
    ops.copy(v, begin, begin + added, values, length);
    length += added;
    history.push_back({keys.narrow(0, 0, length), values.narrow(0, 0, length)});
  }
  return history;
}

int64_t KvCache::add_row() {
  const auto free = std::find_if(rows_.begin(), rows_.end(), [](const Row& r) { return !r.used; });
  const int64_t slot = free - rows_.begin();
  if (free == rows_.end()) rows_.emplace_back();
  Row& added = rows_[slot];
  added.used = true;
  added.capacity = 0;
  added.keys_CKE.resize(num_layers_);
  added.values_CKE.resize(num_layers_);
  added.lengths.assign(num_layers_, 0);
  return slot;
}

void KvCache::remove_row(int64_t slot) { row(slot) = Row{}; }

int64_t KvCache::length(int64_t slot) const {
  CONVOY_INVARIANT(slot >= 0 && slot < static_cast<int64_t>(rows_.size()) && rows_[slot].used,
                   "the cache has no row {}", slot);
  return rows_[slot].lengths.back();
}

}  // namespace convoy::nn
