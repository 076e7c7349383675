// SPDX-License-Identifier: Apache-2.0
//
// Chunks of all rows at once, in fp32. Within a chunk the recurrence is a triangular system
// (arXiv 2412.06464, section 3.3). Chunks are numbered by step: the first chunks of all rows, then
// the second ones, and so on, the longest row first in each step. So the rows that a step still has
// are a prefix of the states, and their chunks lie side by side. Backward computes the forward
// again for LibTorch's autograd.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule_ops.h"

namespace convoy::kernels::delta_chunks {
namespace {

constexpr int64_t kChunk = 64;  // tokens
constexpr double kLengthEpsilon = 1e-6;

struct ChunkTable {
  int64_t tokens_of_chunk = 0;
  std::vector<int64_t> begins;  // first chunk of each step, then the number of chunks N
  at::Tensor tokens_NC;         // T at places without a token
  at::Tensor places_T;          // each token's place among N * C
  std::vector<int64_t> order;   // rows, longest first

  int64_t steps() const { return static_cast<int64_t>(begins.size()) - 1; }
};

ChunkTable chunk_table(const RowIndex& rows, at::Device device) {
  ChunkTable table;
  table.tokens_of_chunk = std::min(kChunk, rows.longest());
  const int64_t size = table.tokens_of_chunk;
  table.order.resize(rows.num_rows());
  std::iota(table.order.begin(), table.order.end(), 0);
  std::stable_sort(table.order.begin(), table.order.end(),
                   [&](int64_t a, int64_t b) { return rows.length(a) > rows.length(b); });
  std::vector<int64_t> tokens, places(rows.num_tokens());
  table.begins = {0};
  for (int64_t first = 0; first < rows.longest(); first += size) {
    for (const int64_t row : table.order) {
      if (rows.length(row) <= first) break;
      for (int64_t at = first; at < first + size; ++at) {
        const bool there = at < rows.length(row);
        if (there) places[rows.begin(row) + at] = static_cast<int64_t>(tokens.size());
        tokens.push_back(there ? rows.begin(row) + at : rows.num_tokens());
      }
    }
    table.begins.push_back(static_cast<int64_t>(tokens.size()) / size);
  }
  device::Upload upload(device);
  const at::Tensor flat = upload.add(tokens);
  table.places_T = upload.add(places);
  upload.send();
  table.tokens_NC = flat.view({-1, size});
  return table;
}

// [T, H, ...] -> [N, H, C, ...]; zeros where there is no token.
at::Tensor in_chunks(const at::Tensor& x, const ChunkTable& table) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[0] = 1;
  const at::Tensor padded = at::cat({x, at::zeros(sizes, x.options())});
  sizes[0] = table.tokens_of_chunk;
  sizes.insert(sizes.begin(), -1);
  return padded.index_select(0, table.tokens_NC.flatten()).view(sizes).transpose(1, 2);
}

at::Tensor of_unit_length(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kFloat);
  return wide * at::rsqrt(wide.square().sum(-1, true) + kLengthEpsilon);
}

struct Advanced {
  at::Tensor out_THF;
  at::Tensor states_RHEF;  // rows in the table's order
};

// `states`: before the first token, rows in the table's order.
Advanced run_chunks(const DeltaRuleTensors& in, const ChunkTable& table, at::Tensor states) {
  const int64_t group = in.v_THF.size(1) / in.k_TKE.size(1);
  const auto of_value_heads = [&](const at::Tensor& x_TKE) {
    return in_chunks(of_unit_length(x_TKE).repeat_interleave(group, 1), table);
  };
  const at::Tensor q = of_value_heads(in.q_TKE) / std::sqrt(double(in.q_TKE.size(2)));
  const at::Tensor k = of_value_heads(in.k_TKE);
  const at::Tensor v = in_chunks(in.v_THF.to(at::kFloat), table);
  const at::Tensor beta = in_chunks(in.beta_TH, table).unsqueeze(-1);
  const at::Tensor decay = in_chunks(in.log_decay_TH, table).cumsum(2).unsqueeze(-1);
  const at::Tensor last = decay.narrow(2, table.tokens_of_chunk - 1, 1);
  const at::Tensor hidden =
      at::ones({table.tokens_of_chunk, table.tokens_of_chunk}, q.options().dtype(at::kBool))
          .triu(1);
  const at::Tensor between = (decay - decay.transpose(2, 3)).masked_fill(hidden, -INFINITY).exp();
  const at::Tensor system = at::matmul(k * beta, k.transpose(2, 3)) * between;
  const auto solved = [&](const at::Tensor& right) {
    return at::linalg_solve_triangular(system, right, /*upper=*/false, /*left=*/true,
                                       /*unitriangular=*/true);
  };
  const at::Tensor values = solved(v * beta);
  const at::Tensor seen_by_keys = solved(k * beta * decay.exp());
  const at::Tensor weights = at::matmul(q, k.transpose(2, 3)) * between;
  const at::Tensor q_decayed = q * decay.exp();
  const at::Tensor k_decayed = (k * (last - decay).exp()).transpose(2, 3);
  const at::Tensor kept = last.exp();
  std::vector<at::Tensor> outputs, ended;
  for (int64_t step = 0; step < table.steps(); ++step) {
    const int64_t begin = table.begins[step], count = table.begins[step + 1] - begin;
    const auto of_step = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    ended.push_back(states.narrow(0, count, states.size(0) - count));
    states = states.narrow(0, 0, count);
    const at::Tensor fresh = of_step(values) - at::matmul(of_step(seen_by_keys), states);
    outputs.push_back(at::matmul(of_step(q_decayed), states) + at::matmul(of_step(weights), fresh));
    states = states * of_step(kept) + at::matmul(of_step(k_decayed), fresh);
  }
  ended.push_back(states);
  std::reverse(ended.begin(), ended.end());
  const at::Tensor out_PHF = at::cat(outputs).transpose(1, 2).flatten(0, 1);
  return {out_PHF.index_select(0, table.places_T).to(in.v_THF.scalar_type()), at::cat(ended)};
}

at::Tensor no_states(const DeltaRuleTensors& in, const RowIndex& rows) {
  return at::zeros({rows.num_rows(), in.v_THF.size(1), in.k_TKE.size(2), in.v_THF.size(2)},
                   in.beta_TH.options());
}

at::Tensor forward(const DeltaRuleTensors& inputs, const RowIndex& rows) {
  if (rows.num_tokens() == 0) return at::empty(inputs.v_THF.sizes(), inputs.v_THF.options());
  return run_chunks(inputs, chunk_table(rows, inputs.q_TKE.device()), no_states(inputs, rows))
      .out_THF;
}

DeltaRuleTensors backward(const at::Tensor& grad_THF, const DeltaRuleTensors& inputs,
                          const RowIndex& rows) {
  const at::AutoGradMode record_graph(true);
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input :
       {inputs.q_TKE, inputs.k_TKE, inputs.v_THF, inputs.log_decay_TH, inputs.beta_TH})
    leaves.push_back(input.detach().requires_grad_());
  const DeltaRuleTensors recorded{leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]};
  if (rows.num_tokens() == 0) return recorded;
  const at::Tensor out_THF = forward(recorded, rows);
  const auto gradients = torch::autograd::grad({out_THF}, leaves, {grad_THF});
  return {gradients[0], gradients[1], gradients[2], gradients[3], gradients[4]};
}

at::Tensor advance(const DeltaRuleTensors& inputs, const RowIndex& rows,
                   const at::Tensor& states_SHEF, const std::vector<int64_t>& slots) {
  if (rows.num_tokens() == 0) return at::empty(inputs.v_THF.sizes(), inputs.v_THF.options());
  const ChunkTable table = chunk_table(rows, inputs.q_TKE.device());
  std::vector<int64_t> ordered;
  for (const int64_t row : table.order) ordered.push_back(slots[row]);
  const at::Tensor places =
      device::to_device(std::span<const int64_t>(ordered), states_SHEF.device());
  Advanced advanced = run_chunks(inputs, table, states_SHEF.index_select(0, places));
  states_SHEF.index_copy_(0, places, advanced.states_RHEF);
  return advanced.out_THF;
}

}  // namespace
}  // namespace convoy::kernels::delta_chunks

namespace convoy::kernels {

const GatedDeltaRuleOps kGatedDeltaRuleAten = {delta_chunks::forward, delta_chunks::backward,
                                               delta_chunks::advance};

}  // namespace convoy::kernels
