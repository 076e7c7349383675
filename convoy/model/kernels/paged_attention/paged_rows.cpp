// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/paged_attention/paged_rows.h"

#include <algorithm>

#include "convoy/core/base/error.h"

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

size_t widest_of(const std::vector<PagedRow>& rows) {
  size_t widest = 0;
  for (const PagedRow& row : rows) widest = std::max(widest, row.blocks.size());
  return widest;
}

// The block table, row by row.
std::vector<int32_t> table_of(const std::vector<PagedRow>& rows, size_t width) {
  std::vector<int32_t> table;
  for (const PagedRow& row : rows) {
    const size_t held = std::min(row.blocks.size(), width);
    table.insert(table.end(), row.blocks.begin(),
                 row.blocks.begin() + static_cast<std::ptrdiff_t>(held));
    table.resize(table.size() + width - held, kNoBlock);
  }
  return table;
}

int64_t end_block_of(const std::vector<PagedRow>& rows) {
  int32_t highest = kNoBlock;
  for (const PagedRow& row : rows)
    for (const int32_t block : row.blocks) highest = std::max(highest, block);
  return int64_t{highest} + 1;
}

// The first place from which all blocks up to the first new token are held.
int64_t first_held_place(const PagedRow& row, int64_t block_tokens) {
  int64_t place = (row.num_keys - row.num_queries) / block_tokens;
  while (place > 0 && row.blocks[place - 1] != kNoBlock) --place;
  return place;
}

int64_t widest_window_of(const PagedRow& row, int64_t block_tokens) {
  if (row.num_queries == 0) return INT64_MAX;
  const int64_t place = first_held_place(row, block_tokens);
  return place == 0 ? INT64_MAX : row.num_keys - row.num_queries - place * block_tokens + 1;
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

std::vector<int32_t> decode_rows_of(const std::vector<PagedRow>& rows, const RowIndex& queries) {
  std::vector<int32_t> decode;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].num_queries != 1) continue;
    for (const int64_t value :
         {queries.begin(static_cast<int64_t>(row)), static_cast<int64_t>(row), rows[row].num_keys})
      decode.push_back(static_cast<int32_t>(value));
  }
  return decode;
}

struct PrefillTables {
  std::vector<int64_t> tokens;
  std::vector<int32_t> blocks, query_starts{0}, key_starts{0}, used_keys;
};

PrefillTables find_prefill(const std::vector<PagedRow>& rows, const RowIndex& queries,
                           int64_t block_tokens, PrefillRows& found) {
  PrefillTables tables;
  for (size_t number = 0; number < rows.size(); ++number) {
    const PagedRow& row = rows[number];
    if (row.num_queries <= 1) continue;
    const int64_t first = first_held_place(row, block_tokens);
    const int64_t end = (row.num_keys + block_tokens - 1) / block_tokens;
    const int64_t keys = row.num_keys - first * block_tokens;
    const int64_t first_token = queries.begin(static_cast<int64_t>(number));
    if (found.empty()) found.first_token = first_token;
    found.is_contiguous &= found.first_token + found.starts.back() == first_token;
    found.rows.push_back(static_cast<int64_t>(number));
    found.starts.push_back(found.starts.back() + row.num_queries);
    found.blocks.push_back(end - first);
    found.keys.push_back(keys);
    found.longest_queries = std::max(found.longest_queries, row.num_queries);
    found.longest_keys = std::max(found.longest_keys, keys);
    for (int64_t token = 0; token < row.num_queries; ++token)
      tables.tokens.push_back(first_token + token);
    tables.blocks.insert(tables.blocks.end(), row.blocks.begin() + first, row.blocks.begin() + end);
    tables.query_starts.push_back(static_cast<int32_t>(found.starts.back()));
    tables.key_starts.push_back(static_cast<int32_t>(tables.blocks.size()) *
                                static_cast<int32_t>(block_tokens));
    tables.used_keys.push_back(static_cast<int32_t>(keys));
  }
  return tables;
}

}  // namespace

PagedRows::PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, at::Device device) {
  device::Upload upload(device);
  *this = PagedRows(std::move(rows), block_tokens, upload);
  upload.send();
}

PagedRows::PagedRows(std::vector<PagedRow> rows, int64_t block_tokens, device::Upload& upload,
                     int64_t planned_keys)
    : rows_(std::move(rows)),
      block_tokens_(block_tokens),
      queries_(starts_of(checked(rows_, block_tokens)), upload) {
  end_block_ = end_block_of(rows_);
  widest_window_ = widest_window_of(rows_, block_tokens_);
  planned_keys_ = planned_keys;
  for (const PagedRow& row : rows_)
    if (row.num_queries == 1)
      longest_decode_keys_ = std::max({longest_decode_keys_, row.num_keys, planned_keys});
  slots_T_ = upload.add(slots_of(rows_, block_tokens));
  const size_t width = longest_decode_keys_ > planned_keys || planned_keys == 0
                           ? widest_of(rows_)
                           : static_cast<size_t>((planned_keys + block_tokens - 1) / block_tokens);
  block_table_RN_ = upload.add(table_of(rows_, width)).view({num_rows(), num_rows() == 0 ? 0 : -1});
  decode_rows_D3_ = upload.add(decode_rows_of(rows_, queries_)).view({-1, 3});
  const PrefillTables tables = find_prefill(rows_, queries_, block_tokens, prefill_);
  if (prefill_.empty()) return;
  prefill_.tokens_P = upload.add(tables.tokens);
  prefill_.blocks_N = upload.add(tables.blocks);
  prefill_.query_starts = upload.add(tables.query_starts);
  prefill_.key_starts = upload.add(tables.key_starts);
  prefill_.used_keys = upload.add(tables.used_keys);
}

int64_t PagedRows::decode_keys(int64_t window) const {
  int64_t keys = 0;
  for (const PagedRow& row : rows_) {
    if (row.num_queries != 1) continue;
    const int64_t planned = std::max(row.num_keys, planned_keys_);
    keys += window > 0 ? std::min(planned, window) : planned;
  }
  return keys;
}

}  // namespace convoy::kernels
