// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/op_names.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

namespace convoy::simulated {
namespace {

thread_local std::vector<const char*> open_ops;

// Returns a copy of `name` that is never freed, because the text may end with its RecordFunction.
const char* lasting(const char* name) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string, std::less<>>;  // never destroyed
  const std::lock_guard lock(mutex);
  const auto found = names->find(std::string_view(name));
  return (found == names->end() ? names->emplace(name).first : found)->c_str();
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  open_ops.push_back(lasting(function.name()));
  return nullptr;
}

void end(const at::RecordFunction&, at::ObserverContext*) {
  if (!open_ops.empty()) open_ops.pop_back();
}

}  // namespace

std::string OpName::text() const {
  if (*op == '\0') return "no op";
  return std::string_view(op) == outer ? op : std::string(op) + " in " + outer;
}

void follow_ops() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(begin, end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OpName current_op() {
  return open_ops.empty() ? OpName{} : OpName{open_ops.back(), open_ops.front()};
}

}  // namespace convoy::simulated
