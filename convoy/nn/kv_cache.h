// SPDX-License-Identifier: Apache-2.0
//
// Keys and values of rows being generated: preallocated per row and layer, grown by doubling.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <vector>

#include "convoy/kernels/attention/attention.h"

namespace convoy::nn {

class KvCache {
 public:
  // `options`: element type and device.
  KvCache(int64_t num_layers, int64_t num_kv_heads, int64_t head_dim, at::TensorOptions options);

  // Appends k, v [T, K, E] of a batch of `rows` and returns each row's whole history in this layer.
  // Row r of the batch is row `slots()[r]` of the cache.
  std::vector<kernels::CachedRow> append(int64_t layer, const at::Tensor& k_TKE,
                                         const at::Tensor& v_TKE, const kernels::RowIndex& rows);

  int64_t add_row();              // an empty slot; slots of removed rows are used again
  void remove_row(int64_t slot);  // frees its memory
  void set_slots(std::vector<int64_t> slots) { slots_ = std::move(slots); }
  const std::vector<int64_t>& slots() const { return slots_; }
  int64_t length(int64_t slot) const;  // tokens stored in every layer

 private:
  struct Row {
    bool used = false;
    int64_t capacity = 0;              // tokens
    std::vector<at::Tensor> keys_CKE;  // per layer
    std::vector<at::Tensor> values_CKE;
    std::vector<int64_t> lengths;
  };
  Row& row(int64_t slot);
  void reserve(Row& row, int64_t tokens) const;

  int64_t num_layers_;
  int64_t num_kv_heads_;
  int64_t head_dim_;
  at::TensorOptions options_;
  std::vector<Row> rows_;
  std::vector<int64_t> slots_;
};

}  // namespace convoy::nn
