// SPDX-License-Identifier: Apache-2.0
#include "convoy/nn/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::nn {
namespace {

constexpr int64_t kFirstCapacityTokens = 64;

// Copies tokens [begin, end) of source_TKE to the positions from `at` on; both contiguous and of one dtype.
void copy_tokens(const at::Tensor& source_TKE, int64_t begin, int64_t end, at::Tensor& target_CKE,
                 int64_t at) {
  const auto token_bytes =
      static_cast<size_t>(target_CKE.stride(0)) * static_cast<size_t>(target_CKE.element_size());
  std::memcpy(static_cast<char*>(target_CKE.data_ptr()) + static_cast<size_t>(at) * token_bytes,
              static_cast<const char*>(source_TKE.const_data_ptr()) +
                  static_cast<size_t>(begin) * token_bytes,
              static_cast<size_t>(end - begin) * token_bytes);
}

}  // namespace

KvCache::KvCache(int64_t num_layers, int64_t num_kv_heads, int64_t head_dim, at::ScalarType dtype)
    : num_layers_(num_layers), num_kv_heads_(num_kv_heads), head_dim_(head_dim), dtype_(dtype) {}

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
      at::Tensor grown = at::empty({capacity, num_kv_heads_, head_dim_}, dtype_);
      if (row.lengths[layer] > 0) copy_tokens(*stored, 0, row.lengths[layer], grown, 0);
      *stored = grown;
    }
  }
  row.capacity = capacity;
}

std::vector<kernels::CachedRow> KvCache::append(int64_t layer, const at::Tensor& k_TKE,
                                                const at::Tensor& v_TKE,
                                                const std::vector<int64_t>& row_starts) {
  CONVOY_INVARIANT(row_starts.size() == slots_.size() + 1, "{} rows for {} slots",
                   row_starts.size() - 1, slots_.size());
  CONVOY_INVARIANT(k_TKE.scalar_type() == dtype_ && k_TKE.size(1) == num_kv_heads_ &&
                       k_TKE.size(2) == head_dim_ && k_TKE.sizes() == v_TKE.sizes(),
                   "keys or values do not fit the cache");
  const at::Tensor k = k_TKE.contiguous();
  const at::Tensor v = v_TKE.contiguous();
  std::vector<kernels::CachedRow> history;
  history.reserve(slots_.size());
  for (size_t r = 0; r < slots_.size(); ++r) {
    Row& stored = row(slots_[r]);
    int64_t& length = stored.lengths[layer];
    const int64_t added = row_starts[r + 1] - row_starts[r];
    reserve(stored, length + added);
    at::Tensor& keys = stored.keys_CKE[layer];
    at::Tensor& values = stored.values_CKE[layer];
    copy_tokens(k, row_starts[r], row_starts[r + 1], keys, length);
    copy_tokens(v, row_starts[r], row_starts[r + 1], values, length);
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
