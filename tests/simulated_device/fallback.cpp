// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "convoy/machine/counting/boxed_ops.h"
#include "simulated_device/cuda_ops.h"
#include "simulated_device/generator.h"
#include "simulated_device/work.h"
#include "simulated_device/working_tensors.h"

namespace convoy::simulated {
namespace {

using counting::for_each_tensor;
using counting::is_write;

// Beginnings of the names of ops that take a number in host memory on GPUs, as pointwise ops do.
constexpr std::array<std::string_view, 9> kTakeHostNumbers = {
    "aten::fill_",       "aten::masked_fill_", "aten::masked_fill",
    "aten::where",       "aten::index_fill_",  "aten::index_put_",
    "aten::_index_put_", "aten::_foreach_",    "aten::_fused_adam"};

// One call of an op. The arguments are replaced by CPU tensors for the CPU's kernel, and the
// results by tensors of the device.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op),
        schema_(op.schema()),
        stack_(stack),
        count_(schema_.arguments().size()),
        given_(stack.end() - static_cast<std::ptrdiff_t>(count_), stack.end()) {}

  void run();

 private:
  struct Opened {
    at::Tensor tensor;
    at::Tensor working;
    size_t argument = 0;
    bool writes = false;
  };

  c10::Device find_device() const;
  std::vector<Use> check_and_collect_uses() const;
  void check_device(const at::Tensor& tensor, size_t argument, bool writes) const;
  bool takes_host_numbers() const;
  bool has_mask_as_index() const;
  const char* wait_kind() const;
  void replace_arguments(WorkingTensors& tensors);
  c10::IValue replaced(const c10::IValue& value, size_t argument, WorkingTensors& tensors);
  at::Tensor open(const at::Tensor& tensor, size_t argument, WorkingTensors& tensors);
  void run_kernel();
  void replace_results(WorkingTensors& tensors);
  c10::IValue closed(const c10::IValue& value, const c10::AliasInfo* alias,
                     WorkingTensors& tensors) const;
  const c10::IValue& argument_of(const c10::AliasInfo& alias) const;
  bool writes(size_t argument) const {
    return is_write(schema_.arguments()[argument].alias_info());
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  size_t count_;
  std::vector<c10::IValue> given_;
  c10::Device device_ = c10::kCPU;
  std::vector<Opened> opened_;
  bool has_generator_ = false;
};

void Call::run() {
  device_ = find_device();
  std::vector<c10::ScalarType> types;
  for_each_tensor(given_,
                  [&](const at::Tensor& tensor, size_t) { types.push_back(tensor.scalar_type()); });
  require_cuda_kernel(schema_, types);
  const Work work(device_, check_and_collect_uses());
  WorkingTensors tensors(device_);
  replace_arguments(tensors);
  run_kernel();
  for (const Opened& opened : opened_)
    if (opened.writes) tensors.update(opened.tensor, opened.working);
  replace_results(tensors);
  if (const char* kind = wait_kind()) machine().wait_for_stream(work.stream(), kind, true);
}

c10::Device Call::find_device() const {
  std::optional<c10::Device> device;
  for_each_tensor(given_, [&](const at::Tensor& tensor, size_t) {
    if (!device.has_value() && is_simulated(tensor)) device = tensor.device();
  });
  for (const c10::IValue& value : given_)
    if (!device.has_value() && value.isDevice()) device = value.toDevice();
  if (!device.has_value() || !device->has_index()) return {kDeviceType, current_device()};
  return *device;
}

std::vector<Use> Call::check_and_collect_uses() const {
  std::vector<Use> uses;
  for_each_tensor(given_, [&](const at::Tensor& tensor, size_t argument) {
    check_device(tensor, argument, writes(argument));
    add_use(uses, tensor, writes(argument));
  });
  return uses;
}

void Call::check_device(const at::Tensor& tensor, size_t argument, bool writes) const {
  if (tensor.device() == device_) return;
  const bool is_host_number = tensor.is_cpu() && tensor.dim() == 0 && !writes;
  TORCH_CHECK(is_host_number && takes_host_numbers(), current_op().text(), " runs on ", device_,
              ", but its argument `", schema_.arguments()[argument].name(), "` is a tensor of ",
              tensor.device(), ", of sizes ", tensor.sizes(), ": move it there first");
}

bool Call::takes_host_numbers() const {
  return op_.hasTag(at::Tag::pointwise) ||
         std::any_of(
             kTakeHostNumbers.begin(), kTakeHostNumbers.end(),
             [&](std::string_view beginning) { return schema_.name().starts_with(beginning); });
}

bool Call::has_mask_as_index() const {
  bool found = false;
  for_each_tensor(given_, [&](const at::Tensor& tensor, size_t argument) {
    found = found || (given_[argument].isOptionalTensorList() &&
                      (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte));
  });
  return found;
}

// Returns the kind of result for which the host must wait on a GPU, or null if there is none.
const char* Call::wait_kind() const {
  if (op_.hasTag(at::Tag::data_dependent_output)) return "value on host";
  if (has_mask_as_index()) return "shape on host";
  const std::optional<int> size = schema_.argumentIndexWithName("output_size");
  const bool is_size_given = size.has_value() && !given_[static_cast<size_t>(*size)].isNone();
  const bool is_index = schema_.name().starts_with("aten::index");
  return op_.hasTag(at::Tag::dynamic_output_shape) && !is_index && !is_size_given ? "shape on host"
                                                                                  : nullptr;
}

void Call::replace_arguments(WorkingTensors& tensors) {
  const size_t begin = stack_.size() - count_;
  for (size_t i = 0; i < count_; ++i) stack_[begin + i] = replaced(given_[i], i, tensors);
}

c10::IValue Call::replaced(const c10::IValue& value, size_t argument, WorkingTensors& tensors) {
  if (value.isTensor()) return open(value.toTensor(), argument, tensors);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(open(tensor, argument, tensors));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList().vec())
      list.push_back(tensor.has_value() ? std::optional(open(*tensor, argument, tensors))
                                        : std::nullopt);
    return list;
  }
  if (value.isDevice()) return c10::Device(c10::kCPU);
  const bool is_generator = schema_.arguments()[argument].type()->isSubtypeOf(
      *c10::OptionalType::create(c10::GeneratorType::get()));
  if (!is_generator) return value;
  has_generator_ = true;
  at::Generator generator =
      value.isNone() ? default_generator(device_.index()) : value.toGenerator();
  return inner_generator(generator, device_);
}

at::Tensor Call::open(const at::Tensor& tensor, size_t argument, WorkingTensors& tensors) {
  if (!tensor.defined()) return tensor;
  at::Tensor working = tensors.open(tensor);
  opened_.push_back({tensor, working, argument, writes(argument)});
  return working;
}

// For ops that draw random numbers without a generator argument: gives the CPU's default generator
// the state of the device's generator.
class DefaultGeneratorOf {
 public:
  explicit DefaultGeneratorOf(c10::Device device)
      : inner_(inner_generator(default_generator(device.index()), device)),
        host_(at::detail::getDefaultCPUGenerator()),
        hosts_state_(host_.get_state()) {
    host_.set_state(inner_.get_state());
  }
  ~DefaultGeneratorOf() {
    inner_.set_state(host_.get_state());
    host_.set_state(hosts_state_);
  }
  DefaultGeneratorOf(const DefaultGeneratorOf&) = delete;
  DefaultGeneratorOf& operator=(const DefaultGeneratorOf&) = delete;

 private:
  at::Generator inner_;
  at::Generator host_;
  at::Tensor hosts_state_;
};

void Call::run_kernel() {
  const at::AutoDispatchBelowADInplaceOrView below;
  std::optional<DefaultGeneratorOf> generator;
  if (!has_generator_ && op_.hasTag(at::Tag::nondeterministic_seeded)) generator.emplace(device_);
  op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
}

void Call::replace_results(WorkingTensors& tensors) {
  const auto& returns = schema_.returns();
  const size_t begin = stack_.size() - returns.size();
  for (size_t i = 0; i < returns.size(); ++i)
    stack_[begin + i] = closed(stack_[begin + i], returns[i].alias_info(), tensors);
}

c10::IValue Call::closed(const c10::IValue& value, const c10::AliasInfo* alias,
                         WorkingTensors& tensors) const {
  if (is_write(alias)) return argument_of(*alias);
  if (value.isTensor()) return tensors.close(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<at::Tensor> list;
  for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(tensors.close(tensor));
  return list;
}

const c10::IValue& Call::argument_of(const c10::AliasInfo& alias) const {
  for (size_t i = 0; i < count_; ++i) {
    const c10::AliasInfo* own = schema_.arguments()[i].alias_info();
    if (own != nullptr && *own == alias) return given_[i];
  }
  TORCH_CHECK(false, schema_.name(), " returns what none of its arguments is");
}

}  // namespace

void run_cpu_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Call(op, *stack).run();
}

}  // namespace convoy::simulated
