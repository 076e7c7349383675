// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/sampler/penalised_logits.h"

#include <map>

namespace convoy::kernels {
namespace {

void add_penalties(std::span<const SamplingRow> rows, int64_t num_ids, device::Upload& upload,
                   SamplingTables& tables) {
  std::vector<int64_t> places;
  std::vector<float> penalties;
  std::vector<int64_t> unread_bases;
  std::vector<int64_t> unread_places;
  std::vector<float> unread_penalties;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto penalty = static_cast<float>(rows[row].rule.repetition_penalty);
    if (rows[row].rule.repetition_penalty == 1.0) continue;
    const int64_t base = static_cast<int64_t>(row) * num_ids;
    for (const int32_t id : rows[row].seen_ids) {
      if (id >= num_ids) continue;
      places.push_back(base + id);
      penalties.push_back(penalty);
    }
    if (rows[row].unread_id < 0) continue;
    unread_bases.push_back(base);
    unread_places.push_back(rows[row].unread_id);
    unread_penalties.push_back(penalty);
  }
  places.insert(places.end(), unread_bases.begin(), unread_bases.end());
  penalties.insert(penalties.end(), unread_penalties.begin(), unread_penalties.end());
  if (places.empty()) return;
  tables.seen_places_N = upload.add(places);
  tables.penalties_N = upload.add(penalties);
  if (!unread_places.empty()) tables.unread_places_U = upload.add(unread_places);
}

void add_additions(std::span<const SamplingRow> rows, int64_t num_ids, device::Upload& upload,
                   SamplingTables& tables) {
  std::vector<int64_t> places, other_places, unread;
  std::vector<float> addends, other_addends, unread_addends;
  for (size_t row = 0; row < rows.size(); ++row) {
    const int64_t base = static_cast<int64_t>(row) * num_ids;
    for (const AddedLogit& added : added_logits(rows[row], num_ids)) {
      (added.is_of_answer ? places : other_places).push_back(base + added.id);
      (added.is_of_answer ? addends : other_addends).push_back(added.addend);
    }
    const UnreadAddends of_unread = unread_addends_of(rows[row]);
    if (rows[row].unread_id < 0 || (of_unread.each == 0 && of_unread.first == 0)) continue;
    unread.insert(unread.end(), {rows[row].unread_id, base});
    unread_addends.insert(unread_addends.end(), {of_unread.each, of_unread.first});
  }
  tables.num_answer_places = std::ssize(places);
  places.insert(places.end(), other_places.begin(), other_places.end());
  addends.insert(addends.end(), other_addends.begin(), other_addends.end());
  if (!places.empty()) {
    tables.added_places_M = upload.add(places);
    tables.addends_M = upload.add(addends);
  }
  if (unread.empty()) return;
  tables.unread_added_W2 = upload.add(unread).view({-1, 2});
  tables.unread_addends_W2 = upload.add(unread_addends).view({-1, 2});
}

at::Tensor with_penalties(const at::Tensor& logits_RV, const SamplingTables& tables,
                          const at::Tensor& unread_ids) {
  if (!tables.seen_places_N.defined()) return logits_RV;
  at::Tensor places_N = tables.seen_places_N;
  if (tables.unread_places_U.defined()) {
    const int64_t unread = tables.unread_places_U.size(0);
    const int64_t known = places_N.size(0) - unread;
    places_N = at::cat(
        {places_N.narrow(0, 0, known),
         places_N.narrow(0, known, unread) + unread_ids.index_select(0, tables.unread_places_U)});
  }
  const at::Tensor before_N = logits_RV.flatten().index_select(0, places_N);
  const at::Tensor after_N =
      at::where(before_N.lt(0), before_N.mul(tables.penalties_N), before_N.div(tables.penalties_N));
  return logits_RV.flatten().index_copy(0, places_N, after_N).view(logits_RV.sizes());
}

// Adds addends_M to the logits at places_M, which are all different.
at::Tensor added_at(const at::Tensor& logits_RV, const at::Tensor& places_M,
                    const at::Tensor& addends_M) {
  const at::Tensor flat = logits_RV.flatten();
  return flat.index_copy(0, places_M, flat.index_select(0, places_M).add(addends_M))
      .view(logits_RV.sizes());
}

at::Tensor with_additions(const at::Tensor& logits_RV, const SamplingTables& tables,
                          const at::Tensor& unread_ids) {
  at::Tensor values_RV = logits_RV;
  if (tables.added_places_M.defined())
    values_RV = added_at(values_RV, tables.added_places_M, tables.addends_M);
  if (!tables.unread_added_W2.defined()) return values_RV;
  const at::Tensor places_W = unread_ids.index_select(0, tables.unread_added_W2.select(1, 0)) +
                              tables.unread_added_W2.select(1, 1);
  at::Tensor addends_W = tables.unread_addends_W2.sum(1);
  if (tables.num_answer_places > 0) {
    const at::Tensor answer_places = tables.added_places_M.narrow(0, 0, tables.num_answer_places);
    const at::Tensor is_known_W = places_W.unsqueeze(1).eq(answer_places).any(1);
    addends_W = at::where(is_known_W, tables.unread_addends_W2.select(1, 0), addends_W);
  }
  return added_at(values_RV, places_W, addends_W);
}

}  // namespace

std::vector<AddedLogit> added_logits(const SamplingRow& row, int64_t num_ids) {
  const SamplingRule& rule = row.rule;
  std::map<int64_t, AddedLogit> added;
  if (rule.frequency_penalty != 0 || rule.presence_penalty != 0) {
    for (const int32_t id : row.seen_ids.subspan(row.answer_begin)) {
      if (id >= num_ids) continue;
      AddedLogit& one = added[id];
      if (!one.is_of_answer) one.addend = static_cast<float>(-rule.presence_penalty);
      one.addend -= static_cast<float>(rule.frequency_penalty);
      one.is_of_answer = true;
    }
  }
  for (const LogitBias& bias : row.biases) added[bias.id].addend += bias.bias;
  std::vector<AddedLogit> list;
  for (auto& [id, one] : added) {
    one.id = id;
    list.push_back(one);
  }
  return list;
}

SamplingTables penalty_tables(std::span<const SamplingRow> rows, int64_t num_ids,
                              device::Upload& upload) {
  SamplingTables tables;
  add_penalties(rows, num_ids, upload, tables);
  add_additions(rows, num_ids, upload, tables);
  return tables;
}

at::Tensor penalised_logits(const at::Tensor& logits_RV, const SamplingTables& tables,
                            const at::Tensor& unread_ids) {
  return with_additions(with_penalties(logits_RV, tables, unread_ids), tables, unread_ids);
}

}  // namespace convoy::kernels
