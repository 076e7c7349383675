// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_call.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <cstdlib>

#include "convoy/machine/counting/boxed_ops.h"
#include "convoy/machine/counting/counted_memory.h"
#include "convoy/machine/counting/recording.h"
#include "convoy/machine/counting/traffic.h"

namespace convoy::counting {
namespace {

at::Tensor tensor_of(c10::Storage storage, const at::Tensor& like, c10::DispatchKey key) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                      like.storage_offset());
  return tensor;
}

c10::Storage counted_storage(size_t bytes) {
  return {c10::Storage::use_byte_size_t(), bytes, counted_allocator().allocate(bytes),
          &counted_allocator(), /*resizable=*/true};
}

// The kernels that give the sizes of results: LibTorch's kernels for tensors without values (meta),
// or its CPU kernels on zeros for ops that have none.
enum class Stand { Meta, Cpu };

bool has_sizes_without_values(const c10::OperatorHandle& op) {
  for (const c10::DispatchKey key :
       {c10::DispatchKey::Meta, c10::DispatchKey::CompositeExplicitAutograd,
        c10::DispatchKey::CompositeExplicitAutogradNonFunctional,
        c10::DispatchKey::CompositeImplicitAutograd})
    if (op.hasKernelForDispatchKey(key)) return true;
  return false;
}

// Zeros of which only the pages that are written take memory.
c10::Storage zeros_of_cpu(size_t bytes) {
  void* memory = std::calloc(bytes, 1);
  return {c10::Storage::use_byte_size_t(), bytes,
          c10::DataPtr(memory, memory, &std::free, c10::kCPU), c10::GetAllocator(c10::kCPU),
          /*resizable=*/true};
}

// Storages of LibTorch's own devices that stand in for the counted storages of one call.
class StandIns {
 public:
  explicit StandIns(Stand stand) : stand_(stand) {}

  at::Tensor open(const at::Tensor& tensor) {
    const c10::DispatchKey key =
        stand_ == Stand::Meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
    return tensor_of(stand_in(tensor.storage()), tensor, key);
  }
  // Returns a view of an argument, or a new tensor, which is also added to `made`.
  at::Tensor close(const at::Tensor& result, std::vector<at::Tensor>& made) const {
    if (!result.defined()) return result;
    for (const auto& [counted, stand_in] : pairs_)
      if (stand_in.unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl())
        return tensor_of(counted, result, c10::DispatchKey::PrivateUse1);
    made.push_back(tensor_of(counted_storage(result.storage().nbytes()), result,
                             c10::DispatchKey::PrivateUse1));
    return made.back();
  }

 private:
  c10::Storage stand_in(const c10::Storage& storage) {
    for (const auto& [counted, stand_in] : pairs_)
      if (counted.unsafeGetStorageImpl() == storage.unsafeGetStorageImpl()) return stand_in;
    const size_t bytes = storage.nbytes();
    if (stand_ == Stand::Cpu) {
      pairs_.emplace_back(storage, zeros_of_cpu(bytes));
    } else {
      pairs_.emplace_back(storage, c10::Storage(c10::Storage::use_byte_size_t(), bytes,
                                                c10::DataPtr(nullptr, c10::Device(c10::kMeta)),
                                                c10::GetAllocator(c10::kMeta), /*resizable=*/true));
    }
    return pairs_.back().second;
  }

  Stand stand_;
  std::vector<std::pair<c10::Storage, c10::Storage>> pairs_;
};

class CountedCall {
 public:
  CountedCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op),
        schema_(op.schema()),
        stack_(stack),
        count_(schema_.arguments().size()),
        given_(stack.end() - static_cast<std::ptrdiff_t>(count_), stack.end()),
        stand_(has_sizes_without_values(op) ? Stand::Meta : Stand::Cpu),
        stand_ins_(stand_) {}

  void run() {
    OpTensors tensors{.name = schema_.name(), .arguments = {}, .results = {}};
    for_each_tensor(given_, [&](const at::Tensor& tensor, size_t argument) {
      if (is_counted(tensor)) tensors.arguments.push_back({tensor, writes(argument)});
    });
    if (returns_what_it_wrote())
      return_arguments();
    else
      compute_sizes(tensors.results);
    Work work = work_of(tensors);
    work.host_waits = host_waits();
    record(std::move(work));
  }

 private:
  bool writes(size_t argument) const {
    return is_write(schema_.arguments()[argument].alias_info());
  }

  // True when the op works in place or writes into tensors that have their sizes already.
  bool returns_what_it_wrote() const {
    for (size_t i = 0; i < count_; ++i)
      if (writes(i) && schema_.arguments()[i].kwarg_only() && given_[i].isTensor() &&
          given_[i].toTensor().numel() == 0)
        return false;
    return std::all_of(schema_.returns().begin(), schema_.returns().end(),
                       [](const c10::Argument& result) { return is_write(result.alias_info()); });
  }

  void return_arguments() {
    torch::jit::drop(stack_, count_);
    for (const c10::Argument& result : schema_.returns()) stack_.push_back(written(result));
  }

  const c10::IValue& written(const c10::Argument& result) const {
    for (size_t i = 0; i < count_; ++i) {
      const c10::AliasInfo* own = schema_.arguments()[i].alias_info();
      if (own != nullptr && *own == *result.alias_info()) return given_[i];
    }
    TORCH_CHECK(false, schema_.name(), " returns what none of its arguments is");
  }

  void compute_sizes(std::vector<at::Tensor>& made) {
    const size_t begin = stack_.size() - count_;
    for (size_t i = 0; i < count_; ++i) stack_[begin + i] = opened(given_[i]);
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      op_.redispatchBoxed(c10::DispatchKeySet(stand_ == Stand::Meta ? c10::DispatchKey::Meta
                                                                    : c10::DispatchKey::CPU),
                          &stack_);
    }
    const auto& returns = schema_.returns();
    for (size_t i = 0; i < returns.size(); ++i) {
      c10::IValue& value = stack_[stack_.size() - returns.size() + i];
      if (value.isTensor()) {
        if (is_write(returns[i].alias_info()))
          value = resized(written(returns[i]), value);
        else
          value = stand_ins_.close(value.toTensor(), made);
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector())
          list.push_back(stand_ins_.close(tensor, made));
        value = list;
      }
    }
  }

  static c10::IValue resized(const c10::IValue& argument, const c10::IValue& result) {
    argument.toTensor().resize_(result.toTensor().sizes());
    return argument;
  }

  c10::IValue opened(const c10::IValue& value) {
    const auto open = [this](const at::Tensor& tensor) {
      return is_counted(tensor) ? stand_ins_.open(tensor) : tensor;
    };
    if (value.isTensor()) return open(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(open(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
        list.push_back(tensor.has_value() ? std::optional(open(*tensor)) : std::nullopt);
      return list;
    }
    if (value.isDevice()) return c10::Device(stand_ == Stand::Meta ? c10::kMeta : c10::kCPU);
    return value;
  }

  bool has_mask_as_index() const {
    bool found = false;
    for_each_tensor(given_, [&](const at::Tensor& tensor, size_t argument) {
      found = found || (given_[argument].isOptionalTensorList() &&
                        (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte));
    });
    return found;
  }

  // True when the host needs a value from the GPU, or the sizes of the result, and so must wait.
  bool host_waits() const {
    if (op_.hasTag(at::Tag::data_dependent_output) || has_mask_as_index()) return true;
    const std::optional<int> size = schema_.argumentIndexWithName("output_size");
    const bool is_size_given = size.has_value() && !given_[static_cast<size_t>(*size)].isNone();
    return op_.hasTag(at::Tag::dynamic_output_shape) &&
           !schema_.name().starts_with("aten::index") && !is_size_given;
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  size_t count_;
  std::vector<c10::IValue> given_;
  Stand stand_;
  StandIns stand_ins_;
};

}  // namespace

bool is_counted(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kPrivateUse1;
}

void count_op(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  CountedCall(op, *stack).run();
}

}  // namespace convoy::counting
