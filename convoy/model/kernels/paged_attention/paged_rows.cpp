// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_rows.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/transfer.h"

namespace convoy::kernels {
namespace {

void check_row(const PagedRow& row, int64_t index, int64_t block_tokens) {
  CONVOY_INVARIANT(row.num_queries >= 0 && row.num_queries <= row.num_keys,
                   "row {} has {} new tokens of {}", index, row.num_queries, row.num_keys);
  const auto held = static_cast<int64_t>(row.blocks.size());
  CONVOY_INVARIANT(held * block_tokens >= row.num_keys,
                   "row {} needs blocks for {} tokens, found {} of {}", index, row.num_keys, held,
                   block_tokens);
  if (row.num_queries == 0) return;
  const int64_t first = (row.num_keys - row.num_queries) / block_tokens;
  const int64_t last = (row.num_keys - 1) / block_tokens;
  CONVOY_INVARIANT(std::all_of(row.blocks.begin() + first, row.blocks.begin() + last + 1,
                               [](int32_t block) { return block >= 0; }),
                   "row {} has new tokens without a block", index);
}

std::vector<int64_t> starts_of(const std::vector<PagedRow>& rows) {
  std::vector<int64_t> starts{0};
  for (const PagedRow& row : rows) starts.push_back(starts.back() + row.num_queries);
  return starts;
}

std::vector<int64_t> slots_of(const std::vector<PagedRow>& rows, int64_t block_tokens) {
  std::vector<int64_t> slots;
  for (const PagedRow& row : rows) {
    for (int64_t key = row.num_keys - row.num_queries; key < row.num_keys; ++key)
      slots.push_back(row.blocks[key / block_tokens] * block_tokens + key % block_tokens);
  }
  return slots;
}

// Row by row, as wide as the widest.
std::vector<int32_t> table_of(const std::vector<PagedRow>& rows) {
  size_t widest = 0;
  for (const PagedRow& row : rows) widest = std::max(widest, row.blocks.size());
  std::vector<int32_t> table;
  for (const PagedRow& row : rows) {
    table.insert(table.end(), row.blocks.begin(), row.blocks.end());
    table.resize(table.size() + widest - row.blocks.size(), kNoBlock);
  }
  return table;
}

int64_t end_block_of(const std::vector<PagedRow>& rows) {
  int32_t highest = kNoBlock;
  for (const PagedRow& row : rows)
    for (const int32_t block : row.blocks) highest = std::max(highest, block);
  return int64_t{highest} + 1;
}

int64_t widest_window_of(const PagedRow& row, int64_t block_tokens) {
  if (row.num_queries == 0) return INT64_MAX;
  const int64_t position = row.num_keys - row.num_queries;
  int64_t place = position / block_tokens;
  while (place > 0 && row.blocks[place - 1] != kNoBlock) --place;
  return place == 0 ? INT64_MAX : position - place * block_tokens + 1;
}

int64_t widest_window_of(const std::vector<PagedRow>& rows, int64_t block_tokens) {
  int64_t widest = INT64_MAX;
  for (const PagedRow& row : rows) widest = std::min(widest, widest_window_of(row, block_tokens));
  return widest;
}

const std::vector<PagedRow>& checked(const std::vector<PagedRow>& rows, int64_t block_tokens) {
  CONVOY_INVARIANT(block_tokens > 0, "a block needs tokens, found {}", block_tokens);
  for (size_t index = 0; index < rows.size(); ++index)
    check_row(rows[index], static_cast<int64_t>(index), block_tokens);
  return rows;
}

}  // namespace

PagedRows::PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, at::Device device)
    : rows_(std::move(rows)),
      block_tokens_(block_tokens),
      queries_(starts_of(checked(rows_, block_tokens)), device) {
  end_block_ = end_block_of(rows_);
  widest_window_ = widest_window_of(rows_, block_tokens_);
  const std::vector<int64_t> slots = slots_of(rows_, block_tokens);
  slots_T_ = device::to_device<int64_t>(slots, device);
  const std::vector<int32_t> table = table_of(rows_);
  block_table_RN_ =
      device::to_device<int32_t>(table, device).view({num_rows(), num_rows() == 0 ? 0 : -1});
}

}  // namespace convoy::kernels
