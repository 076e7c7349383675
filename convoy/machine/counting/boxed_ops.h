// SPDX-License-Identifier: Apache-2.0
//
// For devices of LibTorch's PrivateUse1 that send nearly all ops through one boxed kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <span>
#include <string>

namespace convoy::counting {

inline bool is_write(const c10::AliasInfo* alias) { return alias != nullptr && alias->isWrite(); }

// Calls visit(tensor, number of the argument) for each defined tensor of a call's arguments, also
// for those in lists.
template <class Visit>
void for_each_tensor(std::span<const c10::IValue> arguments, Visit visit) {
  for (size_t at = 0; at < arguments.size(); ++at) {
    const c10::IValue& value = arguments[at];
    if (value.isTensor()) {
      if (value.toTensor().defined()) visit(value.toTensor(), at);
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector())
        if (tensor.defined()) visit(tensor, at);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
        if (tensor.has_value() && tensor->defined()) visit(*tensor, at);
    }
  }
}

// Registers `own_ops`, and `boxed` for all other ops. Ops with a CPU kernel are registered one by
// one, since they usually have a CUDA kernel too. If the device had no kernel of its own for such
// an op, LibTorch would compute it from other ops: the bits would differ from the CPU's, and a GPU
// would run fewer ops.
template <c10::BoxedKernel::BoxedKernelFunction* boxed>
void register_ops(void (*own_ops)(torch::Library&)) {
  constexpr c10::DispatchKey kKey = c10::DispatchKey::PrivateUse1;
  // The libraries are never destroyed, because their destructors would unregister the kernels.
  static auto* aten = new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  static auto* others = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  own_ops(*aten);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const std::string prefix = "aten::";
  for (const c10::OperatorName& name :
       dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CPU)) {
    const auto op = dispatcher.findSchema(name);
    if (!name.name.starts_with(prefix) || !op.has_value() || op->hasKernelForDispatchKey(kKey))
      continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    aten->impl((name.name.substr(prefix.size()) + overload).c_str(),
               torch::CppFunction::makeFromBoxedFunction<boxed>());
  }
  others->fallback(torch::CppFunction::makeFromBoxedFunction<boxed>());
}

}  // namespace convoy::counting
