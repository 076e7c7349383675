// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_ops.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>

#include "convoy/machine/counting/counted_memory.h"
#include "convoy/machine/counting/recorder.h"
#include "convoy/machine/counting/traffic.h"

namespace convoy::counting {
namespace {

constexpr c10::DispatchKeySet kCountingKeys(c10::DispatchKey::PrivateUse1);

bool is_counted(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::kPrivateUse1;
}

bool is_write(const c10::AliasInfo* alias) { return alias != nullptr && alias->isWrite(); }

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

// Where the sizes of results come from: LibTorch's kernels for tensors without values, or, of ops
// that have none, its kernels for CPUs over zeros.
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

// Stand-ins for the storages of one call.
class StandIns {
 public:
  explicit StandIns(Stand stand) : stand_(stand) {}

  at::Tensor open(const at::Tensor& tensor) {
    const c10::DispatchKey key =
        stand_ == Stand::Meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
    return tensor_of(stand_in(tensor.storage()), tensor, key);
  }
  // A view of an argument, or a tensor of its own.
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

// One call of an op that this file has no kernel for.
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
    for_each_tensor([&](const at::Tensor& tensor, size_t argument) {
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
  template <class Visit>
  void for_each_tensor(Visit visit) const {
    for (size_t i = 0; i < count_; ++i) {
      const c10::IValue& value = given_[i];
      if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor(), i);
      } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector())
          if (tensor.defined()) visit(tensor, i);
      } else if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
          if (tensor.has_value() && tensor->defined()) visit(*tensor, i);
      }
    }
  }
  bool writes(size_t argument) const {
    return is_write(schema_.arguments()[argument].alias_info());
  }

  // In place, or into tensors that have their sizes.
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
    for_each_tensor([&](const at::Tensor& tensor, size_t argument) {
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

void count_op(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  CountedCall(op, *stack).run();
}

void record_on_host(const char* name) { record({.name = name}); }

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  record_on_host("empty");
  return at::detail::empty_generic(sizes, &counted_allocator(), kCountingKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  record_on_host("empty");
  return at::detail::empty_strided_generic(sizes, strides, &counted_allocator(), kCountingKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  record_on_host("view");
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, offset);
}

at::Tensor view(const at::Tensor& tensor, at::IntArrayRef sizes) {
  record_on_host("view");
  return at::native::view(tensor, sizes);
}

at::Tensor reshape_alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  record_on_host("view");
  return at::native::_reshape_alias(tensor, sizes, strides);
}

const at::Tensor& resize(const at::Tensor& tensor, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat>) {
  record_on_host("resize");
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const size_t bytes =
      (static_cast<size_t>(tensor.storage_offset()) + static_cast<size_t>(tensor.numel())) *
      tensor.element_size();
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    storage->set_data_ptr_noswap(counted_allocator().allocate(bytes));
    storage->set_nbytes(bytes);
  }
  return tensor;
}

void count_copy_from_host(const at::Tensor& host, const at::Tensor& target, bool non_blocking) {
  Work work{
      .name = "upload", .kind = WorkKind::Upload, .host_waits = !non_blocking || !host.is_pinned()};
  work.bytes_of(content_of(target)) = distinct_bytes(target);
  record(std::move(work));
}

void count_copy_to_host(const at::Tensor& source, const at::Tensor& host, bool non_blocking) {
  Work work{.name = "download",
            .kind = WorkKind::Download,
            .host_waits = !non_blocking || !host.is_pinned()};
  work.bytes_of(content_of(source)) = distinct_bytes(source);
  record(std::move(work));
  host.zero_();
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  if (!is_counted(source)) {
    count_copy_from_host(source, target, non_blocking);
  } else if (!is_counted(target)) {
    count_copy_to_host(source, target, non_blocking);
  } else {
    Work work{.name = "copy", .kind = WorkKind::Op, .launches = 1};
    work.bytes_of(content_of(source)) += distinct_bytes(source);
    work.bytes_of(content_of(target)) += distinct_bytes(target);
    record(std::move(work));
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

// LibTorch has its sizes without values in Python alone, and every row of a cache and of an
// embedding comes this way.
at::Tensor index_select(const at::Tensor& tensor, int64_t dim, const at::Tensor& places) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(dim, tensor.dim())] = places.numel();
  at::Tensor result = at::empty(sizes, tensor.options());
  record(work_of(
      {.name = "aten::index_select", .arguments = {{tensor}, {places}}, .results = {result}}));
  return result;
}

// Nobody can know the value. That of a check is taken to hold.
at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  Work work{.name = "download", .kind = WorkKind::Download, .host_waits = true};
  work.bytes_of(content_of(tensor)) = distinct_bytes(tensor);
  record(std::move(work));
  return tensor.scalar_type() == at::kBool ? at::Scalar(true) : at::Scalar(0);
}

void record_stream(at::Tensor&, c10::Stream) {}

at::Tensor& set_storage_and_shape(at::Tensor& tensor, at::Storage storage, int64_t offset,
                                  at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (strides.empty() && !sizes.empty()) {
    impl->set_sizes_contiguous(sizes);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(sizes, strides, offset);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage) {
  return at::native::set_(tensor, std::move(storage));
}

int64_t seen_pairs(int64_t queries, int64_t keys, bool is_causal, std::optional<int64_t> before) {
  int64_t pairs =
      is_causal ? queries * (keys - queries) + queries * (queries + 1) / 2 : queries * keys;
  if (before) pairs = std::min(pairs, queries * (*before + 1));
  return pairs;
}

// For packed rows; each is taken to be as long as the longest.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> flash_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& starts, const std::optional<at::Tensor>&, int64_t most_queries,
    int64_t most_keys, double, bool is_causal, bool, std::optional<double>,
    std::optional<int64_t> before, std::optional<int64_t>, const std::optional<at::Tensor>&,
    const std::optional<at::Tensor>&) {
  TORCH_CHECK(query.dim() == 3 && starts.has_value(),
              "counting device: flash attention of packed rows alone");
  const at::Tensor out = at::empty(query.sizes(), query.options());
  const at::Tensor sums =
      at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
  const at::Tensor state = at::empty({2}, query.options().dtype(at::kLong));
  const auto rows = static_cast<double>(starts->numel() - 1);
  const auto pairs = static_cast<double>(seen_pairs(most_queries, most_keys, is_causal, before));
  Work work = work_of({.name = "aten::_flash_attention_forward",
                       .arguments = {{query}, {key}, {value}},
                       .results = {out, sums}});
  work.flops = 4.0 * rows * pairs * static_cast<double>(query.size(1) * query.size(2));
  work.product = {.batch = (starts->numel() - 1) * query.size(1),
                  .rows = most_queries,
                  .columns = 1,
                  .inner = query.size(2),
                  .on_tensor_cores = true,
                  .kind = ProductKind::Attention};
  record(std::move(work));
  return {out, sums, state, at::empty({0}, state.options()), at::empty({0}, query.options())};
}

// Three kernels, and where heads share keys two that add up what each head has for them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> flash_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& sums, const at::Tensor& starts, const at::Tensor&,
    int64_t most_queries, int64_t most_keys, double, bool is_causal, const at::Tensor&,
    const at::Tensor&, std::optional<double>, std::optional<int64_t> before,
    std::optional<int64_t>) {
  constexpr double kOfForward = 2.5;
  const bool shares_keys = query.size(1) != key.size(1);
  const auto rows = static_cast<double>(starts.numel() - 1);
  const auto pairs = static_cast<double>(seen_pairs(most_queries, most_keys, is_causal, before));
  const auto wide = query.options().dtype(at::kFloat);
  const at::Tensor query_sums = at::empty(query.sizes(), wide);
  const at::Tensor dots = at::empty(sums.sizes(), wide);
  const at::Tensor grad_query = at::empty(query.sizes(), query.options());
  const at::Tensor grad_key = at::empty(key.sizes(), key.options());
  const at::Tensor grad_value = at::empty(value.sizes(), value.options());
  OpTensors tensors{.name = "aten::_flash_attention_backward",
                    .arguments = {{grad}, {query}, {key}, {value}, {out}, {sums}},
                    .results = {grad_query, grad_key, grad_value}};
  tensors.arguments.push_back({query_sums, /*writes=*/true});
  tensors.arguments.push_back({dots, /*writes=*/true});
  if (shares_keys)
    for (int each = 0; each < 2; ++each)
      tensors.arguments.push_back({at::empty(query.sizes(), query.options()), /*writes=*/true});
  Work work = work_of(tensors);
  work.launches = shares_keys ? 5 : 3;
  work.flops = kOfForward * 4.0 * rows * pairs * static_cast<double>(query.size(1) * query.size(2));
  work.product = {.batch = (starts.numel() - 1) * query.size(1),
                  .rows = most_keys,
                  .columns = 1,
                  .inner = query.size(2),
                  .on_tensor_cores = true,
                  .kind = ProductKind::AttentionBackward};
  record(std::move(work));
  return {grad_query, grad_key, grad_value};
}

// Rows as cuDNN takes them: [B, H, S, E], or packed [T, H, E], of which each is taken to be as long
// as the longest. LibTorch makes lengths and offsets of packed ones by small kernels (MHA.cpp).
struct CudnnBatch {
  CudnnBatch(const at::Tensor& query, const at::Tensor& starts, int64_t most)
      : is_packed(starts.defined()),
        rows(is_packed ? starts.numel() - 1 : query.size(0)),
        heads(query.size(1)),
        longest(most) {}
  double pairs() const {
    return static_cast<double>(rows) * static_cast<double>(seen_pairs(longest, longest, true, {}));
  }
  void describe(Work& work, double products, ProductKind kind, int64_t width) const {
    constexpr int64_t kSmallKernels = 7;
    work.launches += is_packed ? kSmallKernels : 0;
    work.flops = 2.0 * products * pairs() * static_cast<double>(heads * width);
    work.product = {.batch = rows * heads,
                    .rows = longest,
                    .columns = 1,
                    .inner = width,
                    .on_tensor_cores = true,
                    .kind = kind};
  }
  bool is_packed;
  int64_t rows, heads, longest;
};

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor,
           at::Tensor, at::Tensor>
cudnn_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                const std::optional<at::Tensor>&, const std::optional<at::Tensor>& starts,
                const std::optional<at::Tensor>& key_starts, c10::SymInt most_queries,
                c10::SymInt most_keys, bool, double, bool is_causal, bool, std::optional<double>) {
  TORCH_CHECK(is_causal && most_queries == most_keys, "counting device: causal attention alone");
  const CudnnBatch batch(query, starts.value_or(at::Tensor()), most_queries.expect_int());
  const at::Tensor out = at::empty_like(query);
  std::vector<int64_t> of_sums = query.sizes().vec();
  of_sums.back() = 1;
  const at::Tensor sums = at::empty(of_sums, query.options().dtype(at::kFloat));
  const at::Tensor state = at::empty({}, query.options().dtype(at::kLong));
  Work work = work_of({.name = "aten::_cudnn_attention_forward",
                       .arguments = {{query}, {key}, {value}},
                       .results = {out, sums}});
  batch.describe(work, 2, ProductKind::CudnnAttention, query.size(-1));
  record(std::move(work));
  return {out,
          sums,
          starts.value_or(at::Tensor()),
          key_starts.value_or(at::Tensor()),
          most_queries,
          most_keys,
          state,
          state,
          at::Tensor()};
}

// Three kernels: heads that share keys are added up within them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> cudnn_attention_backward(
    const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const at::Tensor& out, const at::Tensor& sums, const at::Tensor&, const at::Tensor&,
    const at::Tensor&, const at::Tensor& starts, const at::Tensor&, int64_t most_queries, int64_t,
    double, bool, std::optional<double>) {
  const CudnnBatch batch(query, starts, most_queries);
  const at::Tensor query_sums = at::empty(query.sizes(), query.options().dtype(at::kFloat));
  OpTensors tensors{.name = "aten::_cudnn_attention_backward",
                    .arguments = {{grad}, {query}, {key}, {value}, {out}, {sums}},
                    .results = {at::empty_like(query), at::empty_like(key), at::empty_like(value)}};
  tensors.arguments.push_back({query_sums, /*writes=*/true});
  Work work = work_of(tensors);
  work.launches = 3;
  batch.describe(work, 5, ProductKind::CudnnAttentionBackward, query.size(-1));
  record(std::move(work));
  return {tensors.results[0], tensors.results[1], tensors.results[2]};
}

// cuBLAS alone has it: no kernel of the CPU says its sizes.
at::Tensor mm_to_type(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(type));
  record(work_of({.name = "aten::mm", .arguments = {{a}, {b}}, .results = {out}}));
  return out;
}

// `out` is what is added to. With a factor of zero what it held is not read.
at::Tensor& addmm_to(const at::Tensor&, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar&, at::Tensor& out) {
  if (beta.toDouble() == 0)
    record(work_of({.name = "aten::mm", .arguments = {{a}, {b}}, .results = {out}}));
  else
    record(work_of(
        {.name = "aten::addmm_", .arguments = {{out, /*writes=*/true}, {a}, {b}}, .results = {}}));
  return out;
}
at::Tensor& addmm_to_type(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                          at::ScalarType, const at::Scalar& beta, const at::Scalar& alpha,
                          at::Tensor& out) {
  return addmm_to(self, a, b, beta, alpha, out);
}

// In chunks of many tensors to a launch (ForeachReduceOp.cu, MultiTensorApply.cuh). CPUs, which
// have no such kernel, take a formula of other ops.
std::vector<at::Tensor> foreach_norm(at::TensorList tensors, const at::Scalar&,
                                     std::optional<at::ScalarType> type) {
  constexpr int64_t kChunk = 65536, kTensors = 110, kBlocks = 320, kCleanupTensors = 400;
  const auto up_to = [](int64_t count, int64_t step) { return (count + step - 1) / step; };
  const auto count = static_cast<int64_t>(tensors.size());
  int64_t chunks = 0, most_chunks = 1;
  OpTensors op{.name = "aten::_foreach_norm", .arguments = {}, .results = {}};
  for (const at::Tensor& tensor : tensors) {
    chunks += up_to(tensor.numel(), kChunk);
    most_chunks = std::max(most_chunks, up_to(tensor.numel(), kChunk));
    op.arguments.push_back({tensor});
  }
  const auto options = type ? tensors[0].options().dtype(*type) : tensors[0].options();
  op.arguments.push_back({at::zeros({count * most_chunks}, options), /*writes=*/true});
  op.results = {at::empty({count}, options)};
  Work work = work_of(op);
  work.launches =
      std::max(up_to(count, kTensors), up_to(chunks, kBlocks)) + up_to(count, kCleanupTensors);
  record(std::move(work));
  return op.results[0].unbind();
}

// As above (ForeachBinaryOpList.cu). CPUs copy one by one.
void foreach_copy(at::TensorList to, at::TensorList from, bool) {
  constexpr int64_t kChunk = 65536, kPairs = 64, kBlocks = 320;
  const auto up_to = [](int64_t count, int64_t step) { return (count + step - 1) / step; };
  int64_t chunks = 0;
  Work work{.name = "_foreach_copy_", .kind = WorkKind::Op};
  for (size_t index = 0; index < to.size(); ++index) {
    chunks += up_to(to[index].numel(), kChunk);
    work.bytes_of(content_of(from[index])) += distinct_bytes(from[index]);
    work.bytes_of(content_of(to[index])) += distinct_bytes(to[index]);
  }
  work.launches = std::max(up_to(static_cast<int64_t>(to.size()), kPairs), up_to(chunks, kBlocks));
  record(std::move(work));
}

// Few rows are added where they belong; many are sorted first (Embedding.cu,
// EmbeddingBackwardKernel.cu: a radix sort, segments by scans, two kernels of sums).
at::Tensor embedding_backward(const at::Tensor& grad, const at::Tensor& places, int64_t rows,
                              int64_t, bool) {
  constexpr int64_t kFewPlaces = 3072;
  const at::Tensor out = at::empty({rows, grad.size(-1)}, grad.options());
  Work work = work_of({.name = "aten::embedding_dense_backward",
                       .arguments = {{grad}, {places}},
                       .results = {out}});
  work.launches = places.numel() <= kFewPlaces ? 2 : 20;
  record(std::move(work));
  return out;
}

void own_ops(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
  library.impl("index_select", &index_select);
  library.impl("record_stream", &record_stream);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_and_shape);
  library.impl("_flash_attention_forward", &flash_attention);
  library.impl("_flash_attention_backward", &flash_attention_backward);
  library.impl("_cudnn_attention_forward", &cudnn_attention);
  library.impl("_cudnn_attention_backward", &cudnn_attention_backward);
  library.impl("mm.dtype", &mm_to_type);
  library.impl("addmm.out", &addmm_to);
  library.impl("addmm.dtype_out", &addmm_to_type);
  library.impl("_foreach_norm.Scalar", &foreach_norm);
  library.impl("_foreach_copy_", &foreach_copy);
  library.impl("embedding_dense_backward", &embedding_backward);
}

// Ops for which CPUs have a kernel have one for CUDA, too, as a rule; for a device that has none
// LibTorch would take a formula of other ops.
void ops_of_the_cpu(torch::Library& library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const std::string prefix = "aten::";
  for (const c10::OperatorName& name :
       dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::CPU)) {
    const auto op = dispatcher.findSchema(name);
    if (!name.name.starts_with(prefix) || !op.has_value() ||
        op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1))
      continue;
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    library.impl((name.name.substr(prefix.size()) + overload).c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&count_op>());
  }
}

}  // namespace

void register_counted_ops() {
  // Kernels are taken away again when their library goes.
  static auto* own = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1,
                                        __FILE__, __LINE__);
  static auto* others = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1,
                                           __FILE__, __LINE__);
  own_ops(*own);
  ops_of_the_cpu(*own);
  others->fallback(torch::CppFunction::makeFromBoxedFunction<&count_op>());
}

}  // namespace convoy::counting
