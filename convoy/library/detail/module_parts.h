// SPDX-License-Identifier: Apache-2.0
//
// Finds the module in any kind of holder, and the tensors in the arguments and results of
// forward().
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace convoy::detail {

// The module in a module holder (as TORCH_MODULE defines them) or in a shared_ptr.
template <class Holder>
std::shared_ptr<torch::nn::Module> module_pointer(const Holder& holder) {
  if constexpr (requires { holder.ptr(); })
    return holder.ptr();
  else
    return holder;
}

template <class Holder>
using ModuleOf = std::remove_reference_t<decltype(*std::declval<Holder&>())>;

// Adds the tensors in `value`: a tensor, an optional, a tuple, pair or array of tensors, a list or
// a map. With `kMustKnow` any other class does not compile.
template <bool kMustKnow, class Value>
void list_tensors(Value& value, std::vector<torch::Tensor*>& found) {
  if constexpr (std::is_same_v<Value, torch::Tensor>) {
    found.push_back(&value);
  } else if constexpr (requires { std::tuple_size<Value>::value; }) {
    std::apply([&](auto&... elements) { (list_tensors<kMustKnow>(elements, found), ...); }, value);
  } else if constexpr (std::ranges::range<Value>) {
    for (auto& element : value) list_tensors<kMustKnow>(element, found);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) list_tensors<kMustKnow>(*value, found);
  } else {
    static_assert(!kMustKnow || !std::is_class_v<Value>,
                  "what a unit returns must be tensors, or tuples, lists or maps of them");
  }
}

template <bool kMustKnow, class Value>
std::vector<torch::Tensor*> tensors_in(Value& value) {
  std::vector<torch::Tensor*> found;
  list_tensors<kMustKnow>(value, found);
  return found;
}

}  // namespace convoy::detail
