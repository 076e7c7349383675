// SPDX-License-Identifier: Apache-2.0
//
// Implements FsdpUnit. The parameters of a unit have their values while a pass is in the unit.
#pragma once

#include <torch/nn/module.h>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "convoy/library/detail/module_parts.h"

namespace convoy {
namespace nn {
class Residency;
}

namespace detail {

// Refers to the object that holds the unit's parameters, and to the unit's number there.
class UnitCore {
 public:
  UnitCore() = default;
  virtual ~UnitCore() = default;
  UnitCore(const UnitCore&) = delete;
  UnitCore& operator=(const UnitCore&) = delete;

  void attach(nn::Residency* residency, size_t unit);  // nullptr detaches the unit
  nn::Residency* residency() const { return residency_; }
  size_t unit() const { return unit_; }

 private:
  nn::Residency* residency_ = nullptr;
  size_t unit_ = 0;
};

// One forward pass through an attached unit.
class UnitPass {
 public:
  explicit UnitPass(const UnitCore& unit);
  ~UnitPass();
  UnitPass(const UnitPass&) = delete;
  UnitPass& operator=(const UnitPass&) = delete;

  // Replace the tensors by equal tensors, at which the backward pass reports: at `outputs` that it
  // enters the unit, at `inputs` that it leaves the unit.
  void enter(const std::vector<torch::Tensor*>& inputs) const;
  void leave(const std::vector<torch::Tensor*>& outputs) const;

 private:
  nn::Residency& residency_;
  size_t unit_;
};

template <class Holder>
class UnitModule : public torch::nn::Module, public UnitCore {
 public:
  explicit UnitModule(Holder module) : module_(std::move(module)) {
    register_module("module", module_pointer(module_));
  }
  const Holder& module() const { return module_; }

 protected:
  template <class... Arguments>
  auto pass(Arguments&&... arguments) {
    if (residency() == nullptr) return module_->forward(std::forward<Arguments>(arguments)...);
    const UnitPass unit_pass(*this);
    std::tuple<std::remove_cvref_t<Arguments>...> own(std::forward<Arguments>(arguments)...);
    unit_pass.enter(tensors_in<false>(own));
    auto output = std::apply(
        [&](auto&... values) { return module_->forward(static_cast<Arguments&&>(values)...); },
        own);
    unit_pass.leave(tensors_in<true>(output));
    return output;
  }

 private:
  Holder module_;
};

// forward() with the signature of the module's forward(), which torch::nn::Sequential and AnyModule
// need. A module without a single signature gets a forward() for any arguments.
template <class Holder, class Signature>
class UnitForward;

template <class Holder, class Result, class Class, class... Arguments>
class UnitForward<Holder, Result (Class::*)(Arguments...)> : public UnitModule<Holder> {
 public:
  using UnitModule<Holder>::UnitModule;
  Result forward(Arguments... arguments) {
    return this->pass(std::forward<Arguments>(arguments)...);
  }
};

template <class Holder, class Result, class Class, class... Arguments>
class UnitForward<Holder, Result (Class::*)(Arguments...) const>
    : public UnitForward<Holder, Result (Class::*)(Arguments...)> {
 public:
  using UnitForward<Holder, Result (Class::*)(Arguments...)>::UnitForward;
};

template <class Holder>
class UnitForward<Holder, void> : public UnitModule<Holder> {
 public:
  using UnitModule<Holder>::UnitModule;
  template <class... Arguments>
  auto forward(Arguments&&... arguments) {
    return this->pass(std::forward<Arguments>(arguments)...);
  }
};

template <class Module>
struct ForwardSignature {
  using type = void;
};
template <class Module>
requires requires { &Module::forward; }
struct ForwardSignature<Module> {
  using type = decltype(&Module::forward);
};

template <class Holder>
using UnitBase = UnitForward<Holder, typename ForwardSignature<ModuleOf<Holder>>::type>;

}  // namespace detail
}  // namespace convoy
