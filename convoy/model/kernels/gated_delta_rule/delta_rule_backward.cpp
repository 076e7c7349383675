// SPDX-License-Identifier: Apache-2.0
//
// Backward of the gated delta rule, one task per (row, key head), tile by tile from the end. With i
// and j tokens of a tile, G the decays' logarithms summed from the tile's first token on, S the
// state before the tile, and D_ij = exp(G_i - G_j):
//   change_i = v_i - exp(G_i) k_i S - sum over j < i of M_ij u_j,   M_ij = D_ij k_i . k_j
//   u_i = beta_i change_i,   S' = exp(G_last) S + sum over j of exp(G_last - G_j) k_j u_j^T
//   out_i = exp(G_i) q_i S + sum over j <= i of P_ij u_j,           P_ij = D_ij q_i . k_j
// From the gradients of out and of S' (`later`):
//   grad_u = P^T grad_out + exp(G_last - G) k later
//   grad_change = (1 + beta M)^-T grad_u,   grad_v = beta grad_change
//   grad_beta_i = grad_change_i . change_i,  and S, q and k follow by the product rule.
// An entry of the inverse is a product of beta, two unit vectors and contractions, so it is at most
// about 1, and a product with it is as exact as a substitution. q_i stands with exp(G_i) wherever
// it stands, so G_i has the gradient q_i . grad_q_i, and the same holds for k_i.
//
// The states and changes of all tiles are computed again, at most kSegmentTiles tiles at a time,
// and kept in memory of the thread. Matrices of one side kTile are panels of the GEMM loops as they
// lie, so nothing is packed. Other loops over a tile's tokens write arrays of their own, or the
// compiler would not use vectors. All in fp32.
#include <ATen/ATen.h>

#include <cmath>
#include <memory>

#include "convoy/model/kernels/gated_delta_rule/delta_rule_heads.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::delta_rule {
namespace {

constexpr int64_t kSegmentTiles = 64;
constexpr int64_t kSquare = kTile * kTile;

struct BackwardTask {
  int64_t row = 0;
  int64_t key_head = 0;
};

// The tiles of a row, and the segments of tiles whose states are kept at a time.
struct RowTiles {
  TokenRange row;

  int64_t count() const { return (row.count + kTile - 1) / kTile; }
  int64_t segments() const { return (count() + kSegmentTiles - 1) / kSegmentTiles; }
  int64_t first_of(int64_t segment) const { return segment * kSegmentTiles; }
  int64_t end_of(int64_t segment) const { return std::min(count(), (segment + 1) * kSegmentTiles); }
  TokenRange tokens(int64_t tile) const {
    return {row.begin + tile * kTile, std::min(kTile, row.count - tile * kTile)};
  }
};

// States before each tile of a segment and behind its last, and the changes of each token, of all
// value heads of a key head.
class SegmentStates {
 public:
  SegmentStates(const Shape& shape, int64_t tiles)
      : shape_(shape),
        tiles_(tiles),
        states_(std::make_unique_for_overwrite<float[]>(shape.group() * (tiles + 1) *
                                                        shape.head_state())),
        changes_(std::make_unique_for_overwrite<float[]>(shape.group() * tiles * shape.panels *
                                                         kSquare)) {}

  // [panels, E, kPanelColumns]
  float* state(int64_t member, int64_t tile) {
    return states_.get() + (member * (tiles_ + 1) + tile) * shape_.head_state();
  }
  // [panels, kTile, kPanelColumns]
  float* changes(int64_t member, int64_t tile) {
    return changes_.get() + (member * tiles_ + tile) * shape_.panels * kSquare;
  }

 private:
  const Shape& shape_;
  int64_t tiles_;
  std::unique_ptr<float[]> states_, changes_;
};

// One tile of a key head, for all its value heads. Rows without tokens are zero.
struct KeyTile {
  explicit KeyTile(const Shape& shape)
      : qk(2 * kTile * shape.key_features),
        qk_transposed(shape.key_features * 2 * kTile),
        k_panel(shape.key_features * kTile),
        products(2 * kSquare),
        grad_q(shape.key_features * kTile),
        grad_k(shape.key_features * kTile) {}

  std::vector<float> qk;             // [2 * kTile, E]: q, then k
  std::vector<float> qk_transposed;  // [E, 2 * kTile]
  std::vector<float> k_panel;        // k^T [E, kTile]
  std::vector<float> products;       // [2 * kTile, kTile]: q . k, then k . k
  std::vector<float> grad_q;         // [E, kTile], summed over value heads
  std::vector<float> grad_k;
  float inverse_q[kTile] = {}, inverse_k[kTile] = {};
};

struct HeadTile {
  explicit HeadTile(const Shape& shape)
      : k_to_end(kTile * shape.key_features),
        decayed_transposed(shape.key_features * 2 * kTile),
        grad_rows(shape.key_features * 2 * kTile),
        grad_columns(shape.key_features * kTile) {}

  float betas[kTile];
  float decay_from_start[kTile];  // exp(G_i)
  float decay_to_end[kTile];      // exp(G_last - G_i)
  float between[kSquare];         // D, 0 for j > i
  float weights_transposed[kSquare];
  float inverse_transposed[kSquare];
  std::vector<float> k_to_end;            // [kTile, E]
  std::vector<float> decayed_transposed;  // [E, 2 * kTile]: exp(G) q, then -exp(G) k
  // grad_out and grad_v, as one operand of [2 * kTile] rows and as two transposed panels.
  float grads[2 * kSquare];
  float grads_transposed[2 * kSquare];
  float u[kSquare], u_transposed[kSquare];
  float grad_u[kSquare], grad_change[kSquare];
  float grad_scores[2 * kSquare];  // grad_out . u, then grad_v . u
  float scores_transposed[2 * kSquare];
  std::vector<float> grad_rows;     // [E, 2 * kTile]: of q, then of k where k_i reads a state
  std::vector<float> grad_columns;  // [E, kTile]: of k where k_j is written into the state
  float grad_betas[kTile];
  double grad_last = 0;  // gradient of G_last, from the state behind the tile
};

// A row-major operand of kPanelColumns columns is a packed one.
PackedView<float> panel(const float* rows) { return {rows, 0}; }

void multiply(const float* a, int64_t stride_a, PackedView<float> b, float* c, int64_t stride_c,
              GemmShape shape, bool accumulate) {
  simd_kernels<float>().multiply(a, stride_a, b, c, stride_c, shape, accumulate);
}

void transpose_square(const float* from, float* to) {
  simd_kernels<float>().transpose(from, kTile, {kTile, kTile}, to, kTile);
}

void scale_columns(float* rows, int64_t stride, int64_t count, const float* factors) {
  for (int64_t row = 0; row < count; ++row, rows += stride)
    simd_kernels<float>().multiply_rows(factors, rows, kTile);
}

// Runs one task after another in the memory of one thread.
template <class Element>
class HeadBackward {
 public:
  // No row may have more than `most_tokens` tokens.
  HeadBackward(const DeltaRuleTensors& inputs, const at::Tensor& grad_THF,
               const DeltaRuleTensors& gradients, const Shape& shape, int64_t most_tokens)
      : inputs_(inputs),
        grad_THF_(grad_THF),
        gradients_(gradients),
        shape_(shape),
        tiles_{{0, most_tokens}},
        segment_(shape, std::min(kSegmentTiles, tiles_.count())),
        starts_(shape.group() * tiles_.segments() * shape.head_state()),
        later_(shape.group() * shape.head_state()),
        keys_(shape),
        head_(shape) {}

  void run(BackwardTask task, TokenRange row) {
    task_ = task;
    tiles_ = {row};
    std::fill(later_.begin(), later_.end(), 0.0f);
    for (int64_t member = 0; member < shape_.group(); ++member)
      std::fill_n(start_of(member, 0), shape_.head_state(), 0.0f);
    for (int64_t segment = 0; segment + 1 < tiles_.segments(); ++segment) {
      for (int64_t member = 0; member < shape_.group(); ++member) run_segment(member, segment);
    }
    for (int64_t segment = tiles_.segments() - 1; segment >= 0; --segment) {
      for (int64_t member = 0; member < shape_.group(); ++member) run_segment(member, segment);
      for (int64_t tile = tiles_.end_of(segment) - 1; tile >= tiles_.first_of(segment); --tile)
        run_tile(tile, tile - tiles_.first_of(segment));
    }
  }

 private:
  int64_t value_head(int64_t member) const { return task_.key_head * shape_.group() + member; }
  float* start_of(int64_t member, int64_t segment) {
    return starts_.data() + (member * tiles_.segments() + segment) * shape_.head_state();
  }

  // Forward over a segment; keeps its states and changes, and where the next one starts.
  void run_segment(int64_t member, int64_t segment) {
    const int64_t first = tiles_.first_of(segment), size = shape_.head_state();
    std::copy_n(start_of(member, segment), size, segment_.state(member, 0));
    for (int64_t tile = first; tile < tiles_.end_of(segment); ++tile) {
      float* state = segment_.state(member, tile - first + 1);
      std::copy_n(segment_.state(member, tile - first), size, state);
      advance(member, tiles_.tokens(tile), state, segment_.changes(member, tile - first));
    }
    if (segment + 1 < tiles_.segments())
      std::copy_n(segment_.state(member, tiles_.end_of(segment) - first), size,
                  start_of(member, segment + 1));
  }

  void advance(int64_t member, TokenRange tokens, float* state, float* changes) {
    float* k = keys_.qk.data() + kTile * shape_.key_features;
    unit_vectors<Element>(inputs_.k_TKE, tokens, task_.key_head, 1.0f, k, nullptr);
    float decays[kTile];
    for (int64_t token = 0; token < tokens.count; ++token) {
      decays[token] = std::exp(of_token(inputs_.log_decay_TH, tokens.begin + token, member));
      head_.betas[token] = of_token(inputs_.beta_TH, tokens.begin + token, member);
    }
    std::fill_n(changes, shape_.panels * kSquare, 0.0f);
    for (int64_t at = 0; at < shape_.panels; ++at) {
      const auto v =
          panel_rows<Element>(inputs_.v_THF, tokens, value_head(member), at, head_.grad_u);
      simd_kernels<float>().delta_rule_changes({.k_TE = k,
                                                .decays_T = decays,
                                                .betas_T = head_.betas,
                                                .tokens = tokens.count,
                                                .features = shape_.key_features},
                                               {.v_TF = v.first,
                                                .v_stride = v.stride,
                                                .out_TF = changes + at * kSquare,
                                                .out_stride = kPanelColumns,
                                                .state = state + at * shape_.panel_state(),
                                                .state_stride = kPanelColumns});
    }
  }

  float of_token(const at::Tensor& x_TH, int64_t token, int64_t member) const {
    return x_TH.const_data_ptr<float>()[token * shape_.heads + value_head(member)];
  }

  // `at`: the tile's number in its segment.
  void run_tile(int64_t tile, int64_t at) {
    const TokenRange tokens = tiles_.tokens(tile);
    read_keys(tokens);
    for (int64_t member = 0; member < shape_.group(); ++member) {
      read_head(member, tokens);
      for (int64_t index = 0; index < shape_.panels; ++index)
        run_panel(member, index, at, tokens, tile + 1 < tiles_.count());
      add_within_tile();
      store_of_head(member, tokens);
    }
    store_unit_gradient(keys_.qk_transposed.data(), keys_.grad_q, keys_.inverse_q,
                        query_scale(shape_), tokens, gradients_.q_TKE);
    store_unit_gradient(keys_.qk_transposed.data() + kTile, keys_.grad_k, keys_.inverse_k, 1.0f,
                        tokens, gradients_.k_TKE);
  }

  void read_keys(TokenRange tokens) {
    const int64_t features = shape_.key_features;
    float *q = keys_.qk.data(), *k = q + kTile * features;
    unit_vectors<Element>(inputs_.q_TKE, tokens, task_.key_head, query_scale(shape_), q,
                          keys_.inverse_q);
    unit_vectors<Element>(inputs_.k_TKE, tokens, task_.key_head, 1.0f, k, keys_.inverse_k);
    for (float* of : {q, k}) std::fill(of + tokens.count * features, of + kTile * features, 0.0f);
    const auto& loops = simd_kernels<float>();
    loops.transpose(q, features, {2 * kTile, features}, keys_.qk_transposed.data(), 2 * kTile);
    loops.transpose(k, features, {kTile, features}, keys_.k_panel.data(), kTile);
    multiply(q, features, panel(keys_.k_panel.data()), keys_.products.data(), kTile,
             {.m = 2 * kTile, .n = kTile, .k = features}, false);
    std::fill(keys_.grad_q.begin(), keys_.grad_q.end(), 0.0f);
    std::fill(keys_.grad_k.begin(), keys_.grad_k.end(), 0.0f);
  }

  // Everything of a value head that does not depend on values.
  void read_head(int64_t member, TokenRange tokens) {
    HeadTile& head = head_;
    head.grad_last = 0;
    double sums[kTile];
    double sum = 0;
    for (int64_t token = 0; token < kTile; ++token) {
      const bool there = token < tokens.count;
      if (there) sum += of_token(inputs_.log_decay_TH, tokens.begin + token, member);
      head.betas[token] = there ? of_token(inputs_.beta_TH, tokens.begin + token, member) : 0.0f;
      head.grad_betas[token] = 0;
      sums[token] = sum;
    }
    std::fill(std::begin(head.between), std::end(head.between), 0.0f);
    for (int64_t row = 0; row < kTile; ++row) {
      float exponents[kTile];
      for (int64_t column = 0; column <= row; ++column)
        exponents[column] = static_cast<float>(sums[row] - sums[column]);
      simd_kernels<float>().softmax_row(exponents, head.between + row * kTile, row + 1, 0.0f);
      head.decay_from_start[row] = static_cast<float>(std::exp(sums[row]));
      head.decay_to_end[row] = static_cast<float>(std::exp(sum - sums[row]));
    }
    set_squares();
    set_decayed_vectors();
  }

  void set_squares() {
    float rows[kSquare], inverse[kSquare] = {};
    for (int64_t at = 0; at < kSquare; ++at) rows[at] = head_.between[at] * keys_.products[at];
    transpose_square(rows, head_.weights_transposed);
    const float* key_products = keys_.products.data() + kSquare;
    for (int64_t row = 0; row < kTile; ++row) {
      float of_row[kTile] = {};
      of_row[row] = 1.0f;
      for (int64_t column = 0; column < row; ++column) {
        const int64_t at = row * kTile + column;
        const float factor = -head_.betas[row] * head_.between[at] * key_products[at];
        const float* before = inverse + column * kTile;
        for (int64_t lane = 0; lane < kTile; ++lane) of_row[lane] += factor * before[lane];
      }
      std::copy_n(of_row, kTile, inverse + row * kTile);
    }
    transpose_square(inverse, head_.inverse_transposed);
  }

  void set_decayed_vectors() {
    const int64_t features = shape_.key_features;
    const float* k = keys_.qk.data() + kTile * features;
    for (int64_t token = 0; token < kTile; ++token)
      simd_kernels<float>().round_row(k + token * features,
                                      head_.k_to_end.data() + token * features, features,
                                      head_.decay_to_end[token]);
    float factors[2 * kTile];
    for (int64_t token = 0; token < kTile; ++token) {
      factors[token] = head_.decay_from_start[token];
      factors[kTile + token] = -head_.decay_from_start[token];
    }
    head_.decayed_transposed = keys_.qk_transposed;
    for (int64_t feature = 0; feature < features; ++feature)
      simd_kernels<float>().multiply_rows(
          factors, head_.decayed_transposed.data() + feature * 2 * kTile, 2 * kTile);
  }

  // `has_later`: tokens follow the tile, so the state behind it has a gradient.
  void run_panel(int64_t member, int64_t index, int64_t at, TokenRange tokens, bool has_later) {
    const int64_t features = shape_.key_features;
    const auto& loops = simd_kernels<float>();
    const bool add = index > 0;
    HeadTile& head = head_;
    float* grad_out = head.grads;
    float* grad_v = head.grads + kSquare;
    float* later = later_.data() + member * shape_.head_state() + index * shape_.panel_state();
    const float* state = segment_.state(member, at) + index * shape_.panel_state();
    const float* changes = segment_.changes(member, at) + index * kSquare;
    read_panel<Element>(grad_THF_, tokens, value_head(member), index, grad_out, kPanelColumns);
    std::fill(grad_out + tokens.count * kTile, grad_out + kSquare, 0.0f);
    for (int64_t token = 0; token < kTile; ++token)
      loops.round_row(changes + token * kTile, head.u + token * kTile, kTile, head.betas[token]);
    transpose_square(head.u, head.u_transposed);
    multiply(head.weights_transposed, kTile, panel(grad_out), head.grad_u, kTile,
             {kTile, kTile, kTile}, false);
    if (has_later)
      multiply(head.k_to_end.data(), features, panel(later), head.grad_u, kTile,
               {kTile, kTile, features}, true);
    multiply(head.inverse_transposed, kTile, panel(head.grad_u), head.grad_change, kTile,
             {kTile, kTile, kTile}, false);
    for (int64_t token = 0; token < kTile; ++token) {
      const float* grad_change = head.grad_change + token * kTile;
      head.grad_betas[token] += loops.dot(grad_change, changes + token * kTile, kTile);
      loops.round_row(grad_change, grad_v + token * kTile, kTile, head.betas[token]);
    }
    write_panel<Element>(grad_v, kTile, tokens, value_head(member), index, gradients_.v_THF);
    transpose_square(grad_out, head.grads_transposed);
    transpose_square(grad_v, head.grads_transposed + kSquare);
    multiply(head.grads, kTile, panel(head.u_transposed), head.grad_scores, kTile,
             {2 * kTile, kTile, kTile}, add);
    multiply(state, kPanelColumns, {head.grads_transposed, kSquare}, head.grad_rows.data(),
             2 * kTile, {features, 2 * kTile, kTile}, add);
    multiply(later, kPanelColumns, panel(head.u_transposed), head.grad_columns.data(), kTile,
             {features, kTile, kTile}, add);
    const float* behind = segment_.state(member, at + 1) + index * shape_.panel_state();
    if (has_later) head.grad_last += loops.dot(behind, later, shape_.panel_state());
    loops.round_row(later, later, shape_.panel_state(), head.decay_from_start[kTile - 1]);
    multiply(head.decayed_transposed.data(), 2 * kTile, panel(head.grads), later, kPanelColumns,
             {features, kPanelColumns, 2 * kTile}, true);
  }

  // The parts of the gradients of q and k that come from other tokens of the tile.
  void add_within_tile() {
    const int64_t features = shape_.key_features;
    HeadTile& head = head_;
    for (int64_t row = 0; row < kTile; ++row) {
      float* of_queries = head.grad_scores + row * kTile;
      float* of_keys = of_queries + kSquare;
      for (int64_t column = 0; column < kTile; ++column) {
        of_queries[column] *= head.between[row * kTile + column];
        of_keys[column] *= column < row ? -head.between[row * kTile + column] : 0.0f;
      }
    }
    transpose_square(head.grad_scores, head.scores_transposed);
    transpose_square(head.grad_scores + kSquare, head.scores_transposed + kSquare);
    float minus[kTile];
    for (int64_t token = 0; token < kTile; ++token) minus[token] = -head.decay_from_start[token];
    scale_columns(head.grad_rows.data(), 2 * kTile, features, head.decay_from_start);
    scale_columns(head.grad_rows.data() + kTile, 2 * kTile, features, minus);
    scale_columns(head.grad_columns.data(), kTile, features, head.decay_to_end);
    multiply(keys_.qk_transposed.data() + kTile, 2 * kTile, {head.scores_transposed, kSquare},
             head.grad_rows.data(), 2 * kTile, {features, 2 * kTile, kTile}, true);
    multiply(keys_.qk_transposed.data(), 2 * kTile, panel(head.grad_scores),
             head.grad_columns.data(), kTile, {features, kTile, 2 * kTile}, true);
  }

  void store_of_head(int64_t member, TokenRange tokens) {
    const auto& loops = simd_kernels<float>();
    float grad_sums[kTile] = {};
    for (int64_t feature = 0; feature < shape_.key_features; ++feature) {
      const float* q = keys_.qk_transposed.data() + feature * 2 * kTile;
      const float* rows = head_.grad_rows.data() + feature * 2 * kTile;
      const float* columns = head_.grad_columns.data() + feature * kTile;
      float of_sums[kTile], of_k[kTile];
      for (int64_t token = 0; token < kTile; ++token)
        of_sums[token] =
            q[token] * rows[token] + q[kTile + token] * (rows[kTile + token] - columns[token]);
      for (int64_t token = 0; token < kTile; ++token)
        of_k[token] = rows[kTile + token] + columns[token];
      for (int64_t token = 0; token < kTile; ++token) grad_sums[token] += of_sums[token];
      loops.add_rows(rows, keys_.grad_q.data() + feature * kTile, kTile);
      loops.add_rows(of_k, keys_.grad_k.data() + feature * kTile, kTile);
    }
    float* log_decays = gradients_.log_decay_TH.mutable_data_ptr<float>();
    float* betas = gradients_.beta_TH.mutable_data_ptr<float>();
    double sum = head_.grad_last;
    for (int64_t token = tokens.count - 1; token >= 0; --token) {
      const int64_t at = (tokens.begin + token) * shape_.heads + value_head(member);
      sum += grad_sums[token];
      log_decays[at] = static_cast<float>(sum);
      betas[at] = head_.grad_betas[token];
    }
  }

  // Takes a gradient through the division y = x / length: grad_x = (grad_y - y (y . grad_y)) /
  // length. `unit` is scale * y [E, 2 * kTile], and `grad` is the gradient of `unit`.
  void store_unit_gradient(const float* unit, std::vector<float>& grad, const float* inverse,
                           float scale, TokenRange tokens, const at::Tensor& to_TKE) {
    const int64_t features = shape_.key_features;
    float along[kTile] = {};
    for (int64_t feature = 0; feature < features; ++feature) {
      for (int64_t token = 0; token < kTile; ++token)
        along[token] += unit[feature * 2 * kTile + token] * grad[feature * kTile + token];
    }
    for (float& of_token : along) of_token /= scale;
    for (int64_t feature = 0; feature < features; ++feature) {
      float* of_feature = grad.data() + feature * kTile;
      const float* of_unit = unit + feature * 2 * kTile;
      float values[kTile];
      for (int64_t token = 0; token < kTile; ++token)
        values[token] =
            inverse[token] * (scale * of_feature[token] - of_unit[token] * along[token]);
      std::copy_n(values, kTile, of_feature);
    }
    float* rows = head_.decayed_transposed.data();
    simd_kernels<float>().transpose(grad.data(), kTile, {features, kTile}, rows, features);
    Element* to = to_TKE.mutable_data_ptr<Element>() +
                  (tokens.begin * shape_.key_heads + task_.key_head) * features;
    for (int64_t token = 0; token < tokens.count; ++token)
      simd_kernels<Element>().round_row(rows + token * features,
                                        to + token * shape_.key_heads * features, features, 1.0f);
  }

  const DeltaRuleTensors& inputs_;
  const at::Tensor& grad_THF_;
  const DeltaRuleTensors& gradients_;
  const Shape& shape_;
  BackwardTask task_ = {};
  RowTiles tiles_;
  SegmentStates segment_;
  std::vector<float> starts_;  // the states where segments start, by value head
  std::vector<float> later_;   // gradient of the state behind the tile, by value head
  KeyTile keys_;
  HeadTile head_;
};

}  // namespace

DeltaRuleTensors run_backward(const at::Tensor& grad_THF, const DeltaRuleTensors& inputs,
                              const RowIndex& rows) {
  const Shape shape(inputs);
  const auto like = [](const at::Tensor& x) { return at::empty(x.sizes(), x.options()); };
  const DeltaRuleTensors gradients{like(inputs.q_TKE), like(inputs.k_TKE), like(inputs.v_THF),
                                   like(inputs.log_decay_TH), like(inputs.beta_TH)};
  std::vector<BackwardTask> tasks;
  for (const int64_t row : rows_by_length(rows)) {
    for (int64_t head = 0; head < shape.key_heads; ++head) tasks.push_back({row, head});
  }
  const int64_t most_tokens = tasks.empty() ? 0 : rows.length(tasks.front().row);
  constexpr int64_t kPasses = 12;  // products for each number of a state
  const int64_t work =
      rows.num_tokens() * shape.heads * shape.key_features * shape.value_features * kPasses;
  with_element(inputs.v_THF, "gated_delta_rule", [&](auto element) {
    for_tasks(std::ssize(tasks), work, [&]() -> TaskBody {
      auto head = std::make_shared<HeadBackward<decltype(element)>>(inputs, grad_THF, gradients,
                                                                    shape, most_tokens);
      return [&, head](int64_t index) {
        const int64_t row = tasks[index].row;
        head->run(tasks[index], {rows.begin(row), rows.length(row)});
      };
    });
  });
  return gradients;
}

}  // namespace convoy::kernels::delta_rule
