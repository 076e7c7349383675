// SPDX-License-Identifier: Apache-2.0
//
// One task per (row, head) writes that row's new tokens in order. A product in bf16 over an odd
// number of tokens reads one place beyond the last, with weight 0. That place is zeroed, because an
// earlier owner of the block may have left NaN there.
#include <cmath>
#include <limits>

#include "convoy/model/kernels/paged_attention/paged_attention_cpu.h"
#include "convoy/model/kernels/paged_attention/paged_layout.h"
#include "convoy/model/kernels/simd/element.h"

namespace convoy::kernels::paged {
namespace {

constexpr float kLargestInt8 = 127.0f;

// One token of one head as it is stored.
template <class Element, class Stored>
struct Rounding {
  Rounding(const Element*, int64_t) {}
  Stored operator()(Element value) const { return value; }
  static constexpr float scale() { return 1.0f; }
};

template <class Element>
struct Rounding<Element, int8_t> {
  Rounding(const Element* features, int64_t count) {
    float largest = 0;
    bool finite = true;
    for (int64_t at = 0; at < count; ++at) {
      const float magnitude = std::abs(static_cast<float>(features[at]));
      finite = finite && magnitude <= std::numeric_limits<float>::max();
      largest = std::max(largest, magnitude);
    }
    // A value that is not finite makes the scale NaN, so that reading gives NaN.
    scale_ = finite ? largest / kLargestInt8 : std::numeric_limits<float>::quiet_NaN();
  }
  int8_t operator()(Element value) const {
    const float steps = std::nearbyint(static_cast<float>(value) / scale_);
    return std::abs(steps) <= kLargestInt8 ? static_cast<int8_t>(steps) : int8_t{0};
  }
  float scale() const { return scale_; }

 private:
  float scale_ = 0;
};

template <class Element, class Stored>
class Writer {
 public:
  Writer(const PagedCache& cache, const at::Tensor& k_TKE, const at::Tensor& v_TKE)
      : layout_(cache.shape),
        shape_(cache.shape),
        k_(k_TKE),
        v_(v_TKE),
        keys_(cache.keys.mutable_data_ptr<Stored>()),
        values_(cache.values.mutable_data_ptr<Stored>()),
        key_scales_(scales(cache.key_scales)),
        value_scales_(scales(cache.value_scales)) {}

  void write(int64_t token, int64_t kv_head, int64_t slot) const {
    const int64_t block = slot / shape_.block_tokens;
    const int64_t place = slot % shape_.block_tokens;
    const float key_scale =
        write_key(features(k_, token, kv_head), keys_ + layout_.keys_of(block, kv_head), place);
    const float value_scale = write_value(features(v_, token, kv_head),
                                          values_ + layout_.values_of(block, kv_head), place);
    if constexpr (kScaled) {
      key_scales_[layout_.scales_of(block, kv_head) + place] = key_scale;
      value_scales_[layout_.scales_of(block, kv_head) + place] = value_scale;
    }
  }

 private:
  using Layout = PagedLayout<Stored>;
  static constexpr bool kScaled = std::is_same_v<Stored, int8_t>;
  static constexpr bool kPairs = std::is_same_v<Stored, at::BFloat16>;

  static float* scales(const at::Tensor& part) {
    return kScaled ? part.mutable_data_ptr<float>() : nullptr;
  }
  static const Element* features(const at::Tensor& x_TKE, int64_t token, int64_t kv_head) {
    return x_TKE.const_data_ptr<Element>() + token * x_TKE.stride(0) + kv_head * x_TKE.stride(1);
  }

  // write_key() and write_value() return the scale.
  float write_key(const Element* from, Stored* to, int64_t place) const {
    const Rounding<Element, Stored> rounding(from, shape_.head_dim);
    Stored* column = to + layout_.key_at(place, 0);
    for (int64_t feature = 0; feature < shape_.head_dim; ++feature)
      column[Layout::in_panel(feature, 0)] = rounding(from[feature]);
    if constexpr (kPairs) {
      if (shape_.head_dim % 2 != 0) column[Layout::in_panel(shape_.head_dim, 0)] = Stored(0.0f);
    }
    return rounding.scale();
  }

  float write_value(const Element* from, Stored* to, int64_t place) const {
    const Rounding<Element, Stored> rounding(from, shape_.head_dim);
    for (int64_t feature = 0; feature < shape_.head_dim; feature += kPanelColumns) {
      Stored* row = to + layout_.value_at(place, feature);
      const int64_t columns = std::min(kPanelColumns, shape_.head_dim - feature);
      for (int64_t column = 0; column < columns; ++column)
        row[Layout::in_panel(0, column)] = rounding(from[feature + column]);
      if constexpr (kPairs) {
        for (int64_t column = 0; column < columns && place % 2 == 0; ++column)
          row[Layout::in_panel(1, column)] = Stored(0.0f);
      }
    }
    return rounding.scale();
  }

  Layout layout_;
  PagedShape shape_;
  const at::Tensor& k_;
  const at::Tensor& v_;
  Stored* keys_;
  Stored* values_;
  float* key_scales_;  // null unless quantised
  float* value_scales_;
};

template <class Element, class Stored>
void store_all(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
               const PagedRows& rows) {
  const Writer<Element, Stored> writer(cache, k_TKE, v_TKE);
  const int64_t heads = cache.shape.num_kv_heads;
  const int64_t tasks = rows.num_rows() * heads;
  const auto* slots = rows.slots_T().const_data_ptr<int64_t>();
  for_rows(tasks, 2 * k_TKE.numel() / tasks, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / heads;
      const int64_t first = rows.queries().begin(row);
      for (int64_t token = first; token < first + rows.queries().length(row); ++token)
        writer.write(token, task % heads, slots[token]);
    }
  });
}

}  // namespace

void store(const at::Tensor& k_TKE, const at::Tensor& v_TKE, const PagedCache& cache,
           const PagedRows& rows) {
  with_element(k_TKE, "store_paged", [&](auto element) {
    using Element = decltype(element);
    if (cache.element == CacheElement::Int8)
      store_all<Element, int8_t>(k_TKE, v_TKE, cache, rows);
    else
      store_all<Element, Element>(k_TKE, v_TKE, cache, rows);
  });
}

}  // namespace convoy::kernels::paged
