// SPDX-License-Identifier: Apache-2.0
//
// The gated delta rule token by token. The columns of a state do not depend on each other: the
// columns of a panel stay in the nearest cache for all tokens, and their sums in registers. See
// vector16.inl.

constexpr int64_t kDeltaParts = std::min<int64_t>(4, kRegistersOfRow);
// As many sums in progress as hide the latency of two multipliers.
constexpr int64_t kDeltaChains = 4 / kDeltaParts;
static_assert(kRegistersOfRow % kDeltaParts == 0);

struct DeltaSums {
  RegisterFloats seen[kDeltaChains][kDeltaParts];   // k^T S
  RegisterFloats asked[kDeltaChains][kDeltaParts];  // q^T S
};

template <bool has_output, int64_t chains>
CONVOY_INLINE void add_delta_rows(DeltaSums& sums, const float* q, const float* k,
                                  const float* state, int64_t stride) {
#pragma GCC unroll 4
  for (int64_t chain = 0; chain < chains; ++chain) {
#pragma GCC unroll 4
    for (int64_t part = 0; part < kDeltaParts; ++part) {
      const auto row =
          load_register<RegisterFloats>(state + chain * stride + part * kRegisterLanes);
      sums.seen[chain][part] += k[chain] * row;
      if constexpr (has_output) sums.asked[chain][part] += q[chain] * row;
    }
  }
}

CONVOY_INLINE RegisterFloats joined_chains(const RegisterFloats (&sums)[kDeltaChains][kDeltaParts],
                                           int64_t part) {
  if constexpr (kDeltaChains == 1) return sums[0][part];
  RegisterFloats sum = sums[0][part];
#pragma GCC unroll 4
  for (int64_t chain = 1; chain < kDeltaChains; ++chain) sum += sums[chain][part];
  return sum;
}

// One token and kDeltaParts registers of columns.
template <bool has_output>
inline void delta_token(const DeltaRuleTokens& tokens, const DeltaRuleColumns& columns,
                        int64_t token, int64_t column) {
  const float* q = has_output ? tokens.q_TE + token * tokens.features : nullptr;
  const float* k = tokens.k_TE + token * tokens.features;
  float* state = columns.state + column;
  DeltaSums sums{};
  int64_t at = 0;
  for (; at + kDeltaChains <= tokens.features; at += kDeltaChains)
    add_delta_rows<has_output, kDeltaChains>(sums, has_output ? q + at : q, k + at,
                                             state + at * columns.state_stride,
                                             columns.state_stride);
  for (; at < tokens.features; ++at)
    add_delta_rows<has_output, 1>(sums, has_output ? q + at : q, k + at,
                                  state + at * columns.state_stride, columns.state_stride);
  const float decay = tokens.decays_T[token], beta = tokens.betas_T[token];
  RegisterFloats updates[kDeltaParts];
#pragma GCC unroll 4
  for (int64_t part = 0; part < kDeltaParts; ++part) {
    const int64_t to = column + part * kRegisterLanes;
    const auto v =
        load_register<RegisterFloats>(columns.v_TF + token * columns.v_stride + to);
    const RegisterFloats change = v - decay * joined_chains(sums.seen, part);
    updates[part] = beta * change;
    if constexpr (has_output) {
      const RegisterFloats out = decay * joined_chains(sums.asked, part) +
                                 tokens.query_keys_T[token] * updates[part];
      __builtin_memcpy(columns.out_TF + token * columns.out_stride + to, &out, sizeof out);
    } else {
      __builtin_memcpy(columns.out_TF + token * columns.out_stride + to, &change, sizeof change);
    }
  }
  for (at = 0; at < tokens.features; ++at, state += columns.state_stride) {
#pragma GCC unroll 4
    for (int64_t part = 0; part < kDeltaParts; ++part) {
      const auto old = load_register<RegisterFloats>(state + part * kRegisterLanes);
      const RegisterFloats updated = old * decay + k[at] * updates[part];
      __builtin_memcpy(state + part * kRegisterLanes, &updated, sizeof updated);
    }
  }
}

template <bool has_output>
void delta_rule(const DeltaRuleTokens& tokens, const DeltaRuleColumns& columns) {
  for (int64_t token = 0; token < tokens.tokens; ++token) {
    for (int64_t column = 0; column < kPanelColumns; column += kDeltaParts * kRegisterLanes)
      delta_token<has_output>(tokens, columns, token, column);
  }
}
