// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/token_sampler.h"

#include <array>
#include <cmath>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/nn/head_loss.h"

namespace convoy::generate {
namespace {

constexpr double kMostPenalty = 2;  // the limit in OpenAI's API

// A random number, uniform in [0, 1).
double draw(const DrawPoint& point) {
  const std::array<uint64_t, 4> counters{point.source.seed, static_cast<uint64_t>(point.source.row),
                                         point.source.sample,
                                         static_cast<uint64_t>(point.position)};
  return static_cast<double>(mix_seed(counters) >> 11) * 0x1.0p-53;
}

kernels::SamplingRow sampling_row(const DrawPoint& point) {
  return {.rule = point.sampling,
          .uniform = draw(point),
          .seen_ids = point.seen_ids,
          .answer_begin = point.answer_begin,
          .biases = point.biases,
          .allowed = point.allowed,
          .unread_id = point.unread_id,
          .wants_logprob = point.wants_logprob,
          .num_likeliest = point.num_likeliest};
}

bool wants_likeliest_alone(const kernels::SamplingRow& row) {
  return row.rule.temperature == 0 && !row.changes_logits() && !row.wants_logprob &&
         row.allowed.empty();
}

}  // namespace

void check_sampling(const Sampling& sampling) {
  const auto demand = [](bool holds, const char* key, const char* wanted, auto found) {
    if (!holds)
      throw ConfigError(fmt::format("{} must be {}, found {}", key, wanted, found), {.key = key});
  };
  demand(sampling.temperature >= 0, "temperature", "0 or above", sampling.temperature);
  demand(sampling.top_k >= 0, "top_k", "0 or above", sampling.top_k);
  demand(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", "above 0 and at most 1",
         sampling.top_p);
  demand(sampling.min_p >= 0 && sampling.min_p <= 1, "min_p", "from 0 to 1", sampling.min_p);
  demand(sampling.repetition_penalty > 0, "repetition_penalty", "above 0",
         sampling.repetition_penalty);
  demand(std::abs(sampling.frequency_penalty) <= kMostPenalty, "frequency_penalty", "from -2 to 2",
         sampling.frequency_penalty);
  demand(std::abs(sampling.presence_penalty) <= kMostPenalty, "presence_penalty", "from -2 to 2",
         sampling.presence_penalty);
}

std::vector<kernels::SampledToken> sample_tokens(const at::Tensor& logits_RV, int64_t num_ids,
                                                 const std::vector<DrawPoint>& points) {
  std::vector<kernels::SamplingRow> rows;
  rows.reserve(points.size());
  for (const DrawPoint& point : points) rows.push_back(sampling_row(point));
  return kernels::sample_tokens(logits_RV, num_ids, rows);
}

// Divides the logits of points with DrawPoint::logprob_at_temperature by their temperature before
// the draw, which then is one at 1. Returns the factors of all rows; empty: all are 1.
std::vector<float> take_temperatures(const std::vector<DrawPoint>& points,
                                     const std::vector<int64_t>& drawn,
                                     std::vector<kernels::SamplingRow>& rows) {
  std::vector<float> factors(rows.size(), 1.0f);
  bool scales = false;
  for (size_t row = 0; row < rows.size(); ++row) {
    double& temperature = rows[row].rule.temperature;
    if (!points[static_cast<size_t>(drawn[row])].logprob_at_temperature || temperature == 0 ||
        temperature == 1)
      continue;
    CONVOY_INVARIANT(!rows[row].changes_logits(),
                     "log-probabilities at a temperature with rules that change logits");
    factors[row] = kernels::logit_factor(temperature);
    temperature = 1;
    scales = true;
  }
  return scales ? factors : std::vector<float>();
}

TokenDraw::TokenDraw(nn::CausalLm& model, int64_t num_ids, const std::vector<DrawPoint>& points,
                     device::Upload& upload)
    : model_(model), num_ids_(num_ids) {
  const bool keeps_no_logits = upload.device().is_cpu() && !model.head().trains();
  for (size_t row = 0; row < points.size(); ++row) {
    const kernels::SamplingRow rule = sampling_row(points[row]);
    const bool is_likeliest = keeps_no_logits && wants_likeliest_alone(rule);
    (is_likeliest ? likeliest_ : drawn_).push_back(static_cast<int64_t>(row));
    if (!is_likeliest) rows_.push_back(rule);
  }
  if (const std::vector<float> factors = take_temperatures(points, drawn_, rows_); !factors.empty())
    factors_N_ = upload.add(factors);
  if (!rows_.empty()) tables_ = kernels::make_sampling_tables(rows_, num_ids, upload);
  if (likeliest_.empty() || drawn_.empty()) return;
  likeliest_L_ = upload.add(likeliest_);
  drawn_N_ = upload.add(drawn_);
}

void TokenDraw::send_allowed() {
  device::Upload upload(model_.device());
  kernels::add_allowed_ids(rows_, upload, tables_);
  upload.send();
}

void TokenDraw::pick(const at::Tensor& hidden_RD, const at::Tensor& unread_ids) {
  const auto of = [&](const at::Tensor& rows) {
    return rows.defined() ? hidden_RD.index_select(0, rows) : hidden_RD;
  };
  kernels::PickedTokens picked;
  if (!drawn_.empty()) {
    at::Tensor logits_NV = nn::head_logits(model_, of(drawn_N_));
    if (factors_N_.defined()) logits_NV = logits_NV.to(at::kFloat).mul(factors_N_.unsqueeze(1));
    picked = kernels::pick_tokens(logits_NV, num_ids_, rows_, tables_, unread_ids);
  }
  if (!likeliest_.empty()) {
    // The likeliest token needs no soft cap, which keeps the order of logits.
    const at::Tensor ids = model_.head().frozen().argmax(of(likeliest_L_), num_ids_);
    const at::Tensor sampled_L2 = at::stack({ids, at::zeros_like(ids)}, 1).to(at::kInt);
    if (drawn_.empty()) {
      picked = {.next_ids_R = ids.clamp_min(0), .sampled_RS = sampled_L2};
    } else {
      const at::Tensor places_R = at::cat({drawn_N_, likeliest_L_}).argsort();
      const auto in_order = [&](const at::Tensor& drawn, const at::Tensor& likeliest) {
        return at::cat({drawn, likeliest}).index_select(0, places_R);
      };
      picked.next_ids_R = in_order(picked.next_ids_R, ids.clamp_min(0));
      const int64_t more_words = picked.sampled_RS.size(1) - sampled_L2.size(1);
      picked.sampled_RS = in_order(
          picked.sampled_RS, at::constant_pad_nd(sampled_L2, {0, more_words}, kernels::kNoToken));
    }
  }
  picked_ = std::move(picked);
}

}  // namespace convoy::generate
