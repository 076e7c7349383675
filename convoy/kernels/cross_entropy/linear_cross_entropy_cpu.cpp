// SPDX-License-Identifier: Apache-2.0
//
// Per chunk of supervised rows: logits = hidden W^T in fp32 (a thread per range of vocabulary
// panels), log-sum-exp and softmax in fp32, then d_hidden = p W and, if wanted, d_weight += p^T
// hidden, with p rounded to the model's type. The weight is packed block by block as it is read, so
// it exists only once in memory.
#include <numeric>

#include "convoy/kernels/cross_entropy/linear_cross_entropy_ops.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

// Logits alive at a time. Larger chunks read the weight less often, smaller ones stay in cache.
constexpr int64_t kLogitBytes = 32 << 20;
constexpr int64_t kMostRows = 256;
// Vocabulary rows that a thread packs and multiplies at a time.
constexpr int64_t kVocabBlock = 128;
// Rows are shared out in multiples of what the GEMM loop keeps in registers.
constexpr int64_t kRowsTogether = 8;

int64_t rows_per_chunk(int64_t vocab) {
  const int64_t fitting =
      kLogitBytes / (round_up(vocab, kPanelColumns) * static_cast<int64_t>(sizeof(float)));
  return std::clamp<int64_t>(fitting, 1, kMostRows);
}

template <class Element>
class Head {
 public:
  Head(const at::Tensor& hidden_ND, const at::Tensor& weight_VD)
      : hidden_(hidden_ND.const_data_ptr<Element>()),
        weight_(weight_VD.const_data_ptr<Element>()),
        features_(weight_VD.size(1)),
        vocab_(weight_VD.size(0)),
        stride_(round_up(vocab_, kPanelColumns)),
        blocks_((vocab_ + kVocabBlock - 1) / kVocabBlock),
        logits_(at::empty({rows_per_chunk(vocab_) * stride_}, at::kFloat)) {}

  int64_t chunk_rows() const { return rows_per_chunk(vocab_); }
  const float* logits(int64_t row) const { return logits_.const_data_ptr<float>() + row * stride_; }
  float* logits(int64_t row) { return logits_.mutable_data_ptr<float>() + row * stride_; }

  // Fills logits(0 .. count) for hidden rows begin .. begin + count.
  void compute_logits(int64_t begin, int64_t count) {
    for_tasks(blocks_, [&]() -> TaskBody {
      auto packed = std::make_shared<std::vector<Element>>(
          packed_elements<Element>({.m = 0, .n = kVocabBlock, .k = features_}));
      return [this, packed, begin, count](int64_t block) {
        const int64_t first = block * kVocabBlock;
        const GemmShape shape{count, std::min(kVocabBlock, vocab_ - first), features_};
        loops_.pack_columns(weight_ + first * features_, features_, shape, packed->data());
        loops_.multiply(hidden_ + begin * features_, features_,
                        {packed->data(), panel_elements<Element>(features_)}, logits(0) + first,
                        stride_, shape, false);
      };
    });
  }

  // Replaces the logits of a row by d(loss)/d(logits) and returns its loss.
  double differentiate(int64_t row, int64_t label) {
    float* values = logits(row);
    const float log_sum_exp = loops_.log_sum_exp(values, vocab_, nullptr);
    const double loss = static_cast<double>(log_sum_exp) - static_cast<double>(values[label]);
    float_loops_.softmax_row(values, values, vocab_, log_sum_exp);
    values[label] -= 1.0f;
    return loss;
  }

  // grad_hidden rows begin .. begin + count = p W. Rows are split, so no sum crosses threads.
  void store_grad_hidden(int64_t begin, int64_t count, Element* grad_hidden) {
    const int64_t share =
        round_up((count + at::get_num_threads() - 1) / at::get_num_threads(), kRowsTogether);
    const int64_t padded = round_up(features_, kPanelColumns);
    for_tasks((count + share - 1) / share, [&]() -> TaskBody {
      auto scratch = std::make_shared<Scratch>(features_, share);
      return [=, this](int64_t task) {
        const int64_t first_row = task * share;
        const int64_t rows = std::min(share, count - first_row);
        for (int64_t first = 0; first < vocab_; first += kVocabBlock) {
          const GemmShape shape{rows, features_, std::min(kVocabBlock, vocab_ - first)};
          round_block(first_row, rows, first, shape.k, scratch->p.data());
          loops_.pack_rows(weight_ + first * features_, features_, shape, scratch->packed.data());
          loops_.multiply(scratch->p.data(), kVocabBlock,
                          {scratch->packed.data(), panel_elements<Element>(shape.k)},
                          scratch->sums.data(), padded, shape, first > 0);
        }
        for (int64_t row = 0; row < rows; ++row) {
          loops_.round_row(scratch->sums.data() + row * padded,
                           grad_hidden + (begin + first_row + row) * features_, features_, 1.0f);
        }
      };
    });
  }

  // grad_weight [V, D padded] += p^T hidden. The vocabulary is split.
  void add_grad_weight(int64_t begin, int64_t count, float* grad_weight) {
    const int64_t padded = round_up(features_, kPanelColumns);
    const GemmShape packed_shape{.m = 0, .n = features_, .k = count};
    std::vector<Element> packed(packed_elements<Element>(packed_shape));
    loops_.pack_rows(hidden_ + begin * features_, features_, packed_shape, packed.data());
    for_tasks(blocks_, [&]() -> TaskBody {
      auto transposed = std::make_shared<std::vector<Element>>(kVocabBlock * count);
      return [this, transposed, &packed, count, padded, grad_weight](int64_t block) {
        const int64_t first = block * kVocabBlock;
        const int64_t width = std::min(kVocabBlock, vocab_ - first);
        for (int64_t row = 0; row < count; ++row) {
          const float* p = logits(row) + first;
          for (int64_t at = 0; at < width; ++at)
            (*transposed)[at * count + row] = static_cast<Element>(p[at]);
        }
        loops_.multiply(transposed->data(), count, {packed.data(), panel_elements<Element>(count)},
                        grad_weight + first * padded, padded, {width, features_, count}, true);
      };
    });
  }

 private:
  struct Scratch {
    std::vector<Element> p;
    std::vector<Element> packed;
    std::vector<float> sums;

    Scratch(int64_t features, int64_t rows)
        : p(rows * kVocabBlock),
          packed(packed_elements<Element>({.m = 0, .n = features, .k = kVocabBlock})),
          sums(rows * round_up(features, kPanelColumns)) {}
  };

  void round_block(int64_t first_row, int64_t rows, int64_t first, int64_t width,
                   Element* to) const {
    for (int64_t row = 0; row < rows; ++row) {
      loops_.round_row(logits(first_row + row) + first, to + row * kVocabBlock, width, 1.0f);
    }
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  const SimdKernels<float>& float_loops_ = simd_kernels<float>();
  const Element* hidden_;
  const Element* weight_;
  int64_t features_;
  int64_t vocab_;
  int64_t stride_;
  int64_t blocks_;
  at::Tensor logits_;
};

HeadLoss loss(const at::Tensor& hidden_ND, const at::Tensor& weight_VD, const at::Tensor& labels_N,
              WantedGradients wanted) {
  const int64_t tokens = hidden_ND.size(0);
  const int64_t features = weight_VD.size(1);
  HeadLoss result;
  if (wanted.hidden) result.hidden_ND = at::empty_like(hidden_ND);
  at::Tensor grad_weight_VP;
  if (wanted.weight) {
    grad_weight_VP = at::zeros({weight_VD.size(0), round_up(features, kPanelColumns)}, at::kFloat);
  }
  std::vector<double> losses(tokens);
  with_element(hidden_ND, "linear_cross_entropy", [&](auto element) {
    using Element = decltype(element);
    Head<Element> head(hidden_ND, weight_VD);
    const int64_t* labels = labels_N.const_data_ptr<int64_t>();
    for (int64_t begin = 0; begin < tokens; begin += head.chunk_rows()) {
      const int64_t count = std::min(head.chunk_rows(), tokens - begin);
      head.compute_logits(begin, count);
      for_rows(count, weight_VD.size(0), [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
          losses[begin + row] = head.differentiate(row, labels[begin + row]);
        }
      });
      if (wanted.hidden)
        head.store_grad_hidden(begin, count, result.hidden_ND.mutable_data_ptr<Element>());
      if (wanted.weight)
        head.add_grad_weight(begin, count, grad_weight_VP.mutable_data_ptr<float>());
    }
  });
  result.loss = at::scalar_tensor(std::accumulate(losses.begin(), losses.end(), 0.0), at::kFloat);
  if (wanted.weight) result.weight_VD = grad_weight_VP.narrow(1, 0, features).contiguous();
  return result;
}

LabelLosses label_losses(const at::Tensor& hidden_ND, const at::Tensor& weight_VD,
                         const at::Tensor& labels_N) {
  const int64_t tokens = hidden_ND.size(0);
  LabelLosses result{.nll_N = at::empty({tokens}, at::kFloat),
                     .correct_N = at::empty({tokens}, at::kBool)};
  const int64_t* labels = labels_N.const_data_ptr<int64_t>();
  float* nll = result.nll_N.mutable_data_ptr<float>();
  bool* correct = result.correct_N.mutable_data_ptr<bool>();
  with_element(hidden_ND, "linear_token_losses", [&](auto element) {
    Head<decltype(element)> head(hidden_ND, weight_VD);
    for (int64_t begin = 0; begin < tokens; begin += head.chunk_rows()) {
      const int64_t count = std::min(head.chunk_rows(), tokens - begin);
      head.compute_logits(begin, count);
      for_rows(count, weight_VD.size(0), [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
          const int64_t label = labels[begin + row];
          int64_t likeliest = 0;
          const float total =
              simd_kernels<float>().log_sum_exp(head.logits(row), weight_VD.size(0), &likeliest);
          nll[begin + row] = total - head.logits(row)[label];
          correct[begin + row] = likeliest == label;
        }
      });
    }
  });
  return result;
}

}  // namespace

const CrossEntropyOps kCrossEntropyCpu = {loss, label_losses};

}  // namespace convoy::kernels
