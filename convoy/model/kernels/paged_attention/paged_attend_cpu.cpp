// SPDX-License-Identifier: Apache-2.0
//
// A unit of work has the query heads of one key/value head, of one or several new tokens of a row.
// It goes through the row's keys split by split (attention_splits.h). A unit with a large part of
// the work is divided among threads by split. Scores, sums and merging are fp32; weights are
// rounded to the model's type before the product with the values, as in packed_attention.
#include <algorithm>
#include <memory>
#include <vector>

#include "convoy/model/kernels/attention/attention_splits.h"
#include "convoy/model/kernels/attention/attention_tasks.h"
#include "convoy/model/kernels/paged_attention/paged_attention_cpu.h"
#include "convoy/model/kernels/paged_attention/paged_layout.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::paged {
namespace {

using attention::kNothing;
using attention::kSplitKeys;
using attention::MergedSums;
using attention::SplitSums;

// Query rows of a unit with several tokens, few enough to stay in the nearest cache.
constexpr int64_t kUnitRows = 32;
// A unit with more than 1 / (kUnitsPerThread * threads) of all work is divided among threads.
constexpr int64_t kUnitsPerThread = 4;

struct Unit {
  int64_t row = 0;
  int64_t kv_head = 0;
  int64_t first_query = 0;
  int64_t num_queries = 0;
  int64_t position = 0;  // place of the first query among the row's keys
  int64_t first_split = 0;
  int64_t end_split = 0;

  int64_t end_key() const { return position + num_queries; }
};

template <class Element>
struct Scratch {
  std::unique_ptr<Element[]> queries;  // [rows, features]
  std::unique_ptr<float[]> scores;     // [rows, split]
  std::unique_ptr<Element[]> weights;
  SplitSums part;
  MergedSums merged;
};

// Stored: Element, or int8_t with scales.
template <class Element, class Stored>
class Attention {
 public:
  Attention(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
            const AttentionConfig& config, const at::Tensor& out_THE)
      : q_THE_(q_THE),
        cache_(cache),
        rows_(rows),
        config_(config),
        out_THE_(out_THE),
        layout_(cache.shape),
        group_(q_THE.size(1) / cache.shape.num_kv_heads),
        features_(q_THE.size(2)),
        padded_features_(round_up(features_, kPanelColumns)),
        block_tokens_(cache.shape.block_tokens),
        split_keys_(std::max(kSplitKeys / block_tokens_, int64_t{1}) * block_tokens_) {
    for (int64_t row = 0; row < rows.num_rows(); ++row) add_units(row);
    std::stable_sort(units_.begin(), units_.end(),
                     [&](const Unit& a, const Unit& b) { return work(a) > work(b); });
  }

  void run() {
    int64_t work_of_all = 0;
    for (const Unit& unit : units_) work_of_all += work(unit);
    const int64_t threads = at::get_num_threads();
    if (threads == 1 || work_of_all <= kSerialWork) {
      Scratch<Element> scratch = make_scratch();
      for (const Unit& unit : units_) compute(unit, scratch);
      return;
    }
    int64_t shared = 0;
    while (shared < num_units() && units_[shared].end_split - units_[shared].first_split > 1 &&
           work(units_[shared]) > work_of_all / (kUnitsPerThread * threads))
      ++shared;
    compute_in_parallel(shared, work_of_all);
  }

 private:
  static constexpr bool kQuantised = std::is_same_v<Stored, int8_t>;

  int64_t num_units() const { return static_cast<int64_t>(units_.size()); }
  int64_t rows_of(const Unit& unit) const { return unit.num_queries * group_; }
  int64_t work(const Unit& unit) const {
    const int64_t keys = unit.end_key() - visible_keys(unit.position).begin;
    return 2 * keys * std::max(rows_of(unit), kRowsOfReading) * features_;
  }
  attention::KeyRange visible_keys(int64_t position) const {
    return attention::visible_keys(position, config_);
  }

  void add_units(int64_t row) {
    const int64_t queries = rows_.row(row).num_queries;
    const int64_t position = rows_.row(row).num_keys - queries;
    const int64_t together = std::max(kUnitRows / group_, int64_t{1});
    for (int64_t first = 0; first < queries; first += together) {
      for (int64_t kv_head = 0; kv_head < cache_.shape.num_kv_heads; ++kv_head) {
        Unit unit{.row = row,
                  .kv_head = kv_head,
                  .first_query = first,
                  .num_queries = std::min(together, queries - first),
                  .position = position + first};
        unit.first_split = visible_keys(unit.position).begin / split_keys_;
        unit.end_split = (unit.end_key() + split_keys_ - 1) / split_keys_;
        most_rows_ = std::max(most_rows_, rows_of(unit));
        units_.push_back(unit);
      }
    }
  }

  Scratch<Element> make_scratch() const {
    return {.queries = std::make_unique_for_overwrite<Element[]>(most_rows_ * features_),
            .scores = std::make_unique_for_overwrite<float[]>(most_rows_ * split_keys_),
            .weights = std::make_unique_for_overwrite<Element[]>(most_rows_ * split_keys_),
            .part = {},
            .merged = {}};
  }

  // Computes the first `shared` units split by split, the others whole.
  void compute_in_parallel(int64_t shared, int64_t work_of_all) {
    struct Split {
      int64_t unit;
      int64_t split;
    };
    std::vector<Split> splits;
    for (int64_t unit = 0; unit < shared; ++unit) {
      for (int64_t split = units_[unit].first_split; split < units_[unit].end_split; ++split)
        splits.push_back({unit, split});
    }
    std::vector<SplitSums> parts(splits.size());
    const auto num_splits = static_cast<int64_t>(splits.size());
    for_tasks(num_splits + num_units() - shared, work_of_all, [&]() -> TaskBody {
      auto scratch = std::make_shared<Scratch<Element>>(make_scratch());
      return [&, scratch](int64_t task) {
        if (task >= num_splits) return compute(units_[task - num_splits + shared], *scratch);
        const Unit& unit = units_[splits[task].unit];
        take_queries(unit, *scratch);
        attend_split(unit, splits[task].split, *scratch, parts[task]);
      };
    });
    MergedSums merged;
    for (size_t at = 0; at < splits.size(); ++at) {
      const Unit& unit = units_[splits[at].unit];
      if (splits[at].split == unit.first_split) merged.restart(rows_of(unit), padded_features_);
      merged.add(parts[at], rows_of(unit), padded_features_);
      if (splits[at].split + 1 == unit.end_split) finish(unit, merged);
    }
  }

  void compute(const Unit& unit, Scratch<Element>& scratch) const {
    take_queries(unit, scratch);
    scratch.merged.restart(rows_of(unit), padded_features_);
    for (int64_t split = unit.first_split; split < unit.end_split; ++split) {
      attend_split(unit, split, scratch, scratch.part);
      scratch.merged.add(scratch.part, rows_of(unit), padded_features_);
    }
    finish(unit, scratch.merged);
  }

  // Takes the query rows of a unit: token by token, and the heads of each token in order.
  void take_queries(const Unit& unit, Scratch<Element>& scratch) const {
    for (int64_t row = 0; row < rows_of(unit); ++row) {
      const Element* from =
          attention::read_head<Element>(q_THE_, token_of(unit, row), head_of(unit, row)).data;
      std::copy_n(from, features_, scratch.queries.get() + row * features_);
    }
  }
  int64_t token_of(const Unit& unit, int64_t row) const {
    return rows_.queries().begin(unit.row) + unit.first_query + row / group_;
  }
  int64_t head_of(const Unit& unit, int64_t row) const {
    return unit.kv_head * group_ + row % group_;
  }

  void attend_split(const Unit& unit, int64_t split, Scratch<Element>& scratch,
                    SplitSums& part) const {
    const int64_t rows = rows_of(unit);
    part.make(rows, padded_features_);
    const int64_t end = std::min((split + 1) * split_keys_, unit.end_key());
    const int64_t first_visible = std::max(visible_keys(unit.position).begin, split * split_keys_);
    const int64_t origin = first_visible / block_tokens_ * block_tokens_;
    for (int64_t key = origin; key < end; key += block_tokens_) {
      const int64_t count = std::min(block_tokens_, end - key);
      float* scores = scratch.scores.get() + key - origin;
      multiply(scratch.queries.get(), features_, keys_at(unit, key), scores, split_keys_,
               {rows, count, features_}, false);
      if (kQuantised) scale_columns(scales_at(cache_.key_scales, unit, key), count, rows, scores);
    }
    weigh(unit, origin, end, scratch, part);
    if (kQuantised) scale_weights(unit, origin, end, scratch);
    for (int64_t key = origin; key < end; key += block_tokens_) {
      const int64_t count = std::min(block_tokens_, end - key);
      multiply(scratch.weights.get() + key - origin, split_keys_, values_at(unit, key),
               part.sums.data(), padded_features_, {rows, features_, count}, key > origin);
    }
  }

  struct Panels {
    const Stored* panels = nullptr;
    int64_t stride = 0;
  };
  // Has the arguments of loops_.multiply.
  void multiply(const Element* a, int64_t stride_a, const Panels& b, float* c, int64_t stride_c,
                const GemmShape& shape, bool accumulate) const {
    if constexpr (kQuantised) {
      // A word holds four codes.
      loops_.multiply_bytes(a, stride_a,
                            {reinterpret_cast<const uint32_t*>(b.panels), b.stride / 4}, c,
                            stride_c, shape, accumulate);
    } else {
      loops_.multiply(a, stride_a, {b.panels, b.stride}, c, stride_c, shape, accumulate);
    }
  }

  // Turns the scores of the keys [origin, end) into weights.
  void weigh(const Unit& unit, int64_t origin, int64_t end, Scratch<Element>& scratch,
             SplitSums& part) const {
    const int64_t width = end - origin;
    for (int64_t row = 0; row < rows_of(unit); ++row) {
      float* scores = scratch.scores.get() + row * split_keys_;
      Element* weights = scratch.weights.get() + row * split_keys_;
      const attention::KeyRange range = visible_keys(unit.position + row / group_);
      const int64_t from = std::max(range.begin, origin) - origin;
      const int64_t to = std::min(range.end, end) - origin;
      if (from >= to) {
        std::fill_n(scores, width, 0.0f);
        std::fill_n(weights, width, Element(0.0f));
        part.log_sum_exp[row] = kNothing;
        continue;
      }
      const float scale = attention::cap_scores(scores + from, to - from, config_);
      if (kQuantised) {
        part.totals[row] = simd_kernels<float>().attention_weights(scores, scores, from, to, width,
                                                                   scale, &part.log_sum_exp[row]);
      } else {
        part.totals[row] = loops_.attention_weights(scores, weights, from, to, width, scale,
                                                    &part.log_sum_exp[row]);
      }
    }
  }

  // Stored numbers are codes. The scales of keys multiply the scores. The scales of values multiply
  // the weights, which replace the scores in the same memory.
  void scale_weights(const Unit& unit, int64_t origin, int64_t end,
                     Scratch<Element>& scratch) const {
    for (int64_t key = origin; key < end; key += block_tokens_)
      scale_columns(scales_at(cache_.value_scales, unit, key), std::min(block_tokens_, end - key),
                    rows_of(unit), scratch.scores.get() + key - origin);
    for (int64_t row = 0; row < rows_of(unit); ++row)
      loops_.round_row(scratch.scores.get() + row * split_keys_,
                       scratch.weights.get() + row * split_keys_, end - origin, 1.0f);
  }
  void scale_columns(const float* scales, int64_t count, int64_t rows, float* columns) const {
    for (int64_t row = 0; row < rows; ++row, columns += split_keys_)
      simd_kernels<float>().multiply_rows(scales, columns, count);
  }

  void finish(const Unit& unit, const MergedSums& merged) const {
    for (int64_t row = 0; row < rows_of(unit); ++row)
      loops_.round_row(
          merged.sums.data() + row * padded_features_,
          attention::write_head<Element>(out_THE_, token_of(unit, row), head_of(unit, row)).data,
          features_, 1.0f / merged.totals[row]);
  }

  int64_t block_of(const Unit& unit, int64_t key) const {
    return rows_.row(unit.row).blocks[key / block_tokens_];
  }
  const float* scales_at(const at::Tensor& scales, const Unit& unit, int64_t key) const {
    return scales.const_data_ptr<float>() + layout_.scales_of(block_of(unit, key), unit.kv_head);
  }
  Panels keys_at(const Unit& unit, int64_t key) const {
    return {
        cache_.keys.const_data_ptr<Stored>() + layout_.keys_of(block_of(unit, key), unit.kv_head),
        layout_.key_panel_stride()};
  }
  Panels values_at(const Unit& unit, int64_t key) const {
    return {cache_.values.const_data_ptr<Stored>() +
                layout_.values_of(block_of(unit, key), unit.kv_head),
            layout_.value_panel_stride()};
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  const at::Tensor& q_THE_;
  const PagedCache& cache_;
  const PagedRows& rows_;
  const AttentionConfig& config_;
  const at::Tensor& out_THE_;
  PagedLayout<Stored> layout_;
  int64_t group_;
  int64_t features_;
  int64_t padded_features_;
  int64_t block_tokens_;
  int64_t split_keys_;
  int64_t most_rows_ = 0;
  std::vector<Unit> units_;  // units with most work first
};

}  // namespace

at::Tensor attend(const at::Tensor& q_THE, const PagedCache& cache, const PagedRows& rows,
                  const AttentionConfig& config) {
  const at::Tensor out_THE = at::empty(q_THE.sizes(), q_THE.options());
  with_element(q_THE, "paged_attention", [&](auto element) {
    using Element = decltype(element);
    if (cache.element == CacheElement::Int8)
      Attention<Element, int8_t>(q_THE, cache, rows, config, out_THE).run();
    else
      Attention<Element, Element>(q_THE, cache, rows, config, out_THE).run();
  });
  return out_THE;
}

}  // namespace convoy::kernels::paged
