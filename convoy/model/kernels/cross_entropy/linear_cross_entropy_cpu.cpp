// SPDX-License-Identifier: Apache-2.0
//
// Per chunk of supervised rows: logits = hidden W^T in fp32 (a thread per range of vocabulary
// panels), log-sum-exp and softmax in fp32, then d_hidden = p W and, if requested, d_weight += p^T
// hidden, with p rounded to the model's type and stored in the memory of the logits. Logits under a
// soft cap are capped block by block behind the product; p is multiplied by the slope, which
// follows from the capped logits. So are logits at a temperature multiplied by its factor, and p.
// The weight is packed block by block as it is read, so it exists only once in memory.
#include <numeric>

#include "convoy/model/kernels/cross_entropy/linear_cross_entropy_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

// The bytes and rows of logits that exist at a time. Larger chunks read the weight less often,
// smaller ones stay in cache.
constexpr int64_t kLogitBytes = 128 << 20;
constexpr int64_t kMostRows = 256;
// Vocabulary rows that a thread packs and multiplies at a time for logits, hidden columns for
// their gradient.
constexpr int64_t kBlockColumns = 128;
// Bytes of p in one block: the gradient of hidden sums over this many vocabulary rows at a time.
constexpr int64_t kInnerBytes = 1024;
// Number of such blocks that share one partial sum. A single running sum over the whole vocabulary
// would lose many small terms: an error of 4e-3 of the gradient at a million ids, and of 1e-7 with
// partial sums.
constexpr int64_t kBlocksPerSum = 16;
// Rows are shared out in multiples of what the GEMM loop keeps in registers.
constexpr int64_t kRowsTogether = 8;

int64_t parts(int64_t total, int64_t of) { return (total + of - 1) / of; }

// Elements between rows of logits: an odd number of cache line pairs, so that the rows of one
// block of the GEMM loop do not fall into one set of the cache.
int64_t logit_stride(int64_t vocab) { return (parts(vocab, kPanelColumns) | 1) * kPanelColumns; }

// Chunks of about equal size.
int64_t rows_per_chunk(int64_t rows, int64_t vocab) {
  const int64_t fitting = kLogitBytes / (logit_stride(vocab) * static_cast<int64_t>(sizeof(float)));
  const int64_t chunks =
      parts(std::max<int64_t>(rows, 1), std::clamp<int64_t>(fitting, 1, kMostRows));
  return std::min(round_up(parts(rows, chunks), kRowsTogether), std::max<int64_t>(rows, 1));
}

template <class Element>
class Head {
 public:
  Head(const at::Tensor& hidden_ND, const OutputHead& head)
      : hidden_(hidden_ND.const_data_ptr<Element>()),
        weight_(head.weight_VD.const_data_ptr<Element>()),
        features_(head.weight_VD.size(1)),
        vocab_(head.weight_VD.size(0)),
        logit_cap_(static_cast<float>(head.form.cap)),
        factor_(head.logit_factor()),
        bound_(head.bound()),
        chunk_rows_(rows_per_chunk(hidden_ND.size(0), vocab_)),
        stride_(logit_stride(vocab_)),
        logits_(at::empty({chunk_rows_ * stride_}, at::kFloat)) {}

  int64_t chunk_rows() const { return chunk_rows_; }
  int64_t product_work(int64_t count) const { return count * vocab_ * features_; }
  float* logits(int64_t row) { return logits_.mutable_data_ptr<float>() + row * stride_; }

  // Fills logits(0 .. count) for hidden rows begin .. begin + count.
  void compute_logits(int64_t begin, int64_t count) {
    for_tasks(parts(vocab_, kBlockColumns), product_work(count), [&]() -> TaskBody {
      auto packed = std::make_shared<std::vector<Element>>(
          packed_elements<Element>({.m = 0, .n = kBlockColumns, .k = features_}));
      return [this, packed, begin, count](int64_t block) {
        const int64_t first = block * kBlockColumns;
        const GemmShape shape{count, std::min(kBlockColumns, vocab_ - first), features_};
        loops_.pack_columns(weight_ + first * features_, features_, shape, packed->data());
        loops_.multiply(hidden_ + begin * features_, features_,
                        {packed->data(), panel_elements<Element>(features_)}, logits(0) + first,
                        stride_, shape, false);
        form_logits(first, shape);
      };
    });
  }

  // Do the logits have a temperature other than 1?
  bool has_factor() const { return factor_ != 1; }

  // Replaces the logits of a row by p = d(loss)/d(product), rounded, and returns its loss. For
  // logits without a factor.
  double differentiate(int64_t row, int64_t label) {
    float* values = logits(row);
    const float log_sum_exp = loops_.log_sum_exp(values, vocab_, nullptr);
    const float of_label = values[label];
    float p_of_label = 0;
    float_loops_.softmax_row(&of_label, &p_of_label, 1, log_sum_exp);
    // store_softmax() may work in place, because its loop writes no further than it has read.
    store_softmax(values, p(row), log_sum_exp);
    p(row)[label] = static_cast<Element>((p_of_label - 1.0f) * slope_at(of_label));
    return static_cast<double>(log_sum_exp) - static_cast<double>(of_label);
  }

  // Like differentiate(), for a loss times `weight`, and for logits at any temperature: p is
  // rounded once, after the products.
  double differentiate_weighed(int64_t row, int64_t label, float weight) {
    float* values = logits(row);
    const float log_sum_exp = loops_.log_sum_exp(values, vocab_, nullptr);
    const float of_label = values[label];
    store_softmax(values, values, log_sum_exp);
    values[label] -= slope_at(of_label);
    loops_.round_row(values, p(row), vocab_, weight * factor_);
    return static_cast<double>(weight) *
           (static_cast<double>(log_sum_exp) - static_cast<double>(of_label));
  }

  // grad_hidden rows begin .. begin + count = p W. No sum crosses threads: tasks are blocks of
  // columns, and of rows where there are more threads.
  void store_grad_hidden(int64_t begin, int64_t count, Element* grad_hidden) {
    const int64_t column_tasks = parts(features_, kBlockColumns);
    const int64_t row_tasks = parts(at::get_num_threads(), column_tasks);
    const int64_t share = round_up(parts(count, row_tasks), kRowsTogether);
    for_tasks(column_tasks * parts(count, share), product_work(count), [&]() -> TaskBody {
      auto scratch = std::make_shared<Scratch>(share);
      return [=, this](int64_t task) {
        const int64_t column = task % column_tasks * kBlockColumns;
        const int64_t row = task / column_tasks * share;
        sum_grad_hidden(row, std::min(share, count - row), column, *scratch);
        const int64_t width = std::min(kBlockColumns, features_ - column);
        for (int64_t at = 0; at < std::min(share, count - row); ++at)
          loops_.round_row(scratch->sums.data() + at * kBlockColumns,
                           grad_hidden + (begin + row + at) * features_ + column, width, 1.0f);
      };
    });
  }

  // grad_weight [V, D padded] = p^T hidden, added to the sums of earlier chunks. Tasks are parts of
  // the vocabulary.
  void add_grad_weight(int64_t begin, int64_t count, float* grad_weight) {
    const int64_t padded = round_up(features_, kPanelColumns);
    const GemmShape packed_shape{.m = 0, .n = features_, .k = count};
    std::vector<Element> packed(packed_elements<Element>(packed_shape));
    loops_.pack_rows(hidden_ + begin * features_, features_, packed_shape, packed.data());
    for_tasks(parts(vocab_, kBlockColumns), product_work(count), [&]() -> TaskBody {
      auto transposed = std::make_shared<std::vector<Element>>(kBlockColumns * count);
      return [=, this, &packed](int64_t block) {
        const int64_t first = block * kBlockColumns;
        const int64_t width = std::min(kBlockColumns, vocab_ - first);
        loops_.transpose(p(0) + first, p_stride(), {count, width}, transposed->data(), count);
        if (begin > 0) fetch(grad_weight + first * padded, width * padded);
        loops_.multiply(transposed->data(), count, {packed.data(), panel_elements<Element>(count)},
                        grad_weight + first * padded, padded, {width, features_, count}, begin > 0);
      };
    });
  }

 private:
  void form_logits(int64_t first, const GemmShape& shape) {
    for (int64_t row = 0; row < shape.m; ++row) {
      float* const values = logits(row) + first;
      if (logit_cap_ != 0)
        float_loops_.soft_cap(values, values, shape.n, {.scale = 1, .cap = logit_cap_});
      if (factor_ != 1) float_loops_.round_row(values, values, shape.n, factor_);
    }
  }

  // Stores the softmax of a row, times the slope of the soft cap at each logit.
  template <class To>
  void store_softmax(const float* values, To* to, float log_sum_exp) const {
    const SimdKernels<To>& loops = simd_kernels<To>();
    if (logit_cap_ == 0)
      loops.softmax_row(values, to, vocab_, log_sum_exp);
    else
      loops.capped_softmax_row(values, to, vocab_, log_sum_exp, bound_);
  }
  float slope_at(float logit) const {
    if (logit_cap_ == 0) return 1.0f;
    const float share = logit / bound_;
    return 1.0f - share * share;
  }

  // Prefetches memory in the order of addresses. The product reads it by columns; without this
  // prefetch, each read would wait for the memory's latency.
  static void fetch(const float* from, int64_t count) {
    constexpr int64_t kLineFloats = 16;
    for (int64_t at = 0; at < count; at += kLineFloats) __builtin_prefetch(from + at, 1, 2);
  }

  static constexpr int64_t kInner = kInnerBytes / static_cast<int64_t>(sizeof(Element));

  struct Scratch {
    std::vector<Element> packed;
    std::vector<float> sums;
    std::vector<float> part;

    explicit Scratch(int64_t rows)
        : packed(packed_elements<Element>({.m = 0, .n = kBlockColumns, .k = kInner})),
          sums(rows * kBlockColumns),
          part(rows * kBlockColumns) {}
  };

  // p lies in the memory of the logits, each row of p at the beginning of its row of logits.
  int64_t p_stride() const {
    return stride_ * static_cast<int64_t>(sizeof(float) / sizeof(Element));
  }
  Element* p(int64_t row) {
    return static_cast<Element*>(logits_.mutable_data_ptr()) + row * p_stride();
  }

  void sum_grad_hidden(int64_t row, int64_t rows, int64_t column, Scratch& scratch) {
    sum_blocks(row, rows, column, 0, scratch, scratch.sums);
    for (int64_t first = kBlocksPerSum * kInner; first < vocab_; first += kBlocksPerSum * kInner) {
      sum_blocks(row, rows, column, first, scratch, scratch.part);
      loops_.add_rows(scratch.part.data(), scratch.sums.data(), rows * kBlockColumns);
    }
  }

  // to [rows, kBlockColumns] = p W of kBlocksPerSum blocks from vocabulary row `begin` on.
  void sum_blocks(int64_t row, int64_t rows, int64_t column, int64_t begin, Scratch& scratch,
                  std::vector<float>& to) {
    const int64_t width = std::min(kBlockColumns, features_ - column);
    const int64_t end = std::min(vocab_, begin + kBlocksPerSum * kInner);
    for (int64_t first = begin; first < end; first += kInner) {
      const GemmShape shape{rows, width, std::min(kInner, end - first)};
      loops_.pack_rows(weight_ + first * features_ + column, features_, shape,
                       scratch.packed.data());
      loops_.multiply(p(row) + first, p_stride(),
                      {scratch.packed.data(), panel_elements<Element>(shape.k)}, to.data(),
                      kBlockColumns, shape, first > begin);
    }
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  const SimdKernels<float>& float_loops_ = simd_kernels<float>();
  const Element* hidden_;
  const Element* weight_;
  int64_t features_;
  int64_t vocab_;
  float logit_cap_;  // 0: none
  float factor_;     // multiplies logits at a temperature
  float bound_;      // OutputHead::bound()
  int64_t chunk_rows_;
  int64_t stride_;
  at::Tensor logits_;
};

HeadLoss loss(const at::Tensor& hidden_ND, const OutputHead& output_head,
              const HeadTargets& targets, WantedGradients wanted) {
  const at::Tensor& weight_VD = output_head.weight_VD;
  const int64_t tokens = hidden_ND.size(0);
  const int64_t features = weight_VD.size(1);
  HeadLoss result;
  if (wanted.hidden) result.hidden_ND = at::empty_like(hidden_ND);
  at::Tensor grad_weight_VP;
  if (wanted.weight) {
    grad_weight_VP = at::empty({weight_VD.size(0), round_up(features, kPanelColumns)}, at::kFloat);
    if (tokens == 0) grad_weight_VP.zero_();
  }
  std::vector<double> losses(tokens);
  with_element(hidden_ND, "linear_cross_entropy", [&](auto element) {
    using Element = decltype(element);
    Head<Element> head(hidden_ND, output_head);
    const int64_t* labels = targets.labels_N.const_data_ptr<int64_t>();
    const float* weights =
        targets.weights_N.defined() ? targets.weights_N.const_data_ptr<float>() : nullptr;
    for (int64_t begin = 0; begin < tokens; begin += head.chunk_rows()) {
      const int64_t count = std::min(head.chunk_rows(), tokens - begin);
      head.compute_logits(begin, count);
      for_rows(count, weight_VD.size(0), [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
          const int64_t label = labels[begin + row];
          const float weight = weights == nullptr ? 1.0f : weights[begin + row];
          losses[begin + row] = weights == nullptr && !head.has_factor()
                                    ? head.differentiate(row, label)
                                    : head.differentiate_weighed(row, label, weight);
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

// One pass over the gradient of a weight, which is as large as the weight.
at::Tensor scaled(const at::Tensor& gradient, const at::Tensor& factor, at::ScalarType dtype) {
  if (gradient.scalar_type() != at::kFloat) return gradient.to(at::kFloat).mul_(factor).to(dtype);
  at::Tensor result = at::empty(gradient.sizes(), gradient.options().dtype(dtype));
  with_element(result, "linear_cross_entropy", [&](auto element) {
    using Element = decltype(element);
    for_rows(gradient.numel(), 1, [&](int64_t begin, int64_t end) {
      simd_kernels<Element>().round_row(gradient.const_data_ptr<float>() + begin,
                                        result.mutable_data_ptr<Element>() + begin, end - begin,
                                        factor.item<float>());
    });
  });
  return result;
}

LabelLosses label_losses(const at::Tensor& hidden_ND, const OutputHead& output_head,
                         const at::Tensor& labels_N) {
  const int64_t tokens = hidden_ND.size(0);
  const int64_t vocab = output_head.weight_VD.size(0);
  LabelLosses result{.nll_N = at::empty({tokens}, at::kFloat),
                     .correct_N = at::empty({tokens}, at::kBool)};
  const int64_t* labels = labels_N.const_data_ptr<int64_t>();
  float* nll = result.nll_N.mutable_data_ptr<float>();
  bool* correct = result.correct_N.mutable_data_ptr<bool>();
  with_element(hidden_ND, "linear_token_losses", [&](auto element) {
    Head<decltype(element)> head(hidden_ND, output_head);
    for (int64_t begin = 0; begin < tokens; begin += head.chunk_rows()) {
      const int64_t count = std::min(head.chunk_rows(), tokens - begin);
      head.compute_logits(begin, count);
      for_rows(count, vocab, [&](int64_t first, int64_t end) {
        for (int64_t row = first; row < end; ++row) {
          const int64_t label = labels[begin + row];
          int64_t likeliest = 0;
          const float total =
              simd_kernels<float>().log_sum_exp(head.logits(row), vocab, &likeliest);
          nll[begin + row] = total - head.logits(row)[label];
          correct[begin + row] = likeliest == label;
        }
      });
    }
  });
  return result;
}

at::Tensor capped_by_loops(const at::Tensor& logits, double logit_cap) {
  const at::Tensor capped = logits.to(at::kFloat).contiguous();
  auto* const values = capped.mutable_data_ptr<float>();
  for_rows(capped.numel(), 1, [&](int64_t begin, int64_t end) {
    simd_kernels<float>().soft_cap(values + begin, values + begin, end - begin,
                                   {.scale = 1, .cap = static_cast<float>(logit_cap)});
  });
  return capped;
}

}  // namespace

const CrossEntropyOps kCrossEntropyCpu = {loss, scaled, label_losses, capped_by_loops};

}  // namespace convoy::kernels
