// SPDX-License-Identifier: Apache-2.0
//
// Steps of one token a row, recorded once as a graph of the device and started again.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <bit>

#include "convoy/generate/engine/engine_step.h"
#include "convoy/machine/device/transfer.h"

namespace convoy::generate {

// Recorded steps need a stream of their own: other code of this process uses the model on the
// default stream.
std::optional<c10::Stream> Engine::stream_of_steps() {
  if (!can_record() || !model_.device().is_cuda()) return {};
  const c10::impl::VirtualGuardImpl streams(model_.device().type());
  if (!stream_) stream_ = streams.getStreamFromGlobalPool(model_.device());
  if (unread_.empty()) {
    c10::Event asked(model_.device().type());
    asked.record(streams.getStream(model_.device()));
    asked.block(*stream_);
  }
  return stream_;
}

bool Engine::can_record() const {
  if (config_.adapters != nullptr || model_.residency() != nullptr || !reads_late()) return false;
  // Attention under a soft cap takes the rows' lengths from the host, which a recording would keep.
  if (model_.score_cap() > 0) return false;
  // Attention without the kernels for these heads takes the lengths from the host too (Gemma 4 has
  // heads of 512 features).
  if (!heads_fit_kernels_) return false;
  // A pass takes the slots of its states from the host, and a recording would keep them.
  if (!cache_.states().empty()) return false;
  const at::Device device = model_.device();
  return config_.records_steps.value_or(device.is_cuda() &&
                                        device::DeviceGraph::problem(device).empty());
}

int64_t Engine::recorded_keys(const std::vector<scheduler::PlannedRow>& plan) const {
  constexpr int64_t kLeastKeys = 512;
  if (!can_record()) return 0;
  int64_t longest = kLeastKeys;
  for (const scheduler::PlannedRow& planned : plan) {
    const Row& row = *rows_.at(planned.number);
    const bool is_fit = planned.end - planned.begin == 1 && planned.draws &&
                        row.unread_place >= 0 && row.request.draws_alike();
    if (!is_fit) return 0;
    longest = std::max(longest, planned.end);
  }
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
}

int64_t Engine::num_recorded() const {
  return std::count_if(step_kinds_.begin(), step_kinds_.end(),
                       [](const auto& kind) { return kind.second.recorded != nullptr; });
}

const Engine::RecordedStep* Engine::start_recorded(const Inputs& inputs, int64_t planned_keys,
                                                   device::Upload& upload) {
  // Only later uses of a kind of step are recorded: a recording costs about as much as a step.
  constexpr int64_t kUsesBefore = 2;
  constexpr int64_t kMostRecorded = 256;
  const at::Tensor& before = unread_.back().tokens.ids_R();
  const int64_t num_rows = inputs.batch.num_tokens();
  auto& [uses, recorded] = step_kinds_[{num_rows, planned_keys, inputs.draw->scales_logits()}];
  if (recorded == nullptr && (++uses <= kUsesBefore || num_recorded() >= kMostRecorded))
    return nullptr;
  const at::Tensor ids_T =
      inputs.unread.are_all(num_rows, before.size(0))
          ? before
          : before.index_select(0, device::to_device(std::span<const int64_t>(inputs.unread.places),
                                                     model_.device()));
  if (recorded != nullptr) {
    upload.send_in_place_of(recorded->tables);
    recorded->ids_T.copy_(ids_T);
  } else {
    upload.send();
    recorded = record(inputs, upload.sent_bytes(), ids_T.clone());
    if (first_recorded_ == nullptr) first_recorded_ = recorded.get();
  }
  recorded->graph.start();
  ++figures_.recorded_steps;
  return recorded.get();
}

std::unique_ptr<Engine::RecordedStep> Engine::record(const Inputs& inputs, const at::Tensor& tables,
                                                     const at::Tensor& ids_T) {
  // The table of positions is made long enough now: recorded steps keep reading this table, so
  // longer rows must not replace it later.
  model_.prepare_positions(config_.longest_row_tokens);
  std::unique_ptr<RecordedStep> made(new RecordedStep{
      .graph = device::DeviceGraph(model_.device(),
                                   first_recorded_ == nullptr ? nullptr : &first_recorded_->graph),
      .batch = inputs.batch,
      .paged = inputs.paged,
      .draw = inputs.draw,
      .tables = tables,
      .ids_T = ids_T});
  made->batch.replace_ids(ids_T);
  made->graph.record([this, step = made.get()] {
    cache_.set_rows(step->paged);
    run(step->batch, {}, step->draw, {});
  });
  return made;
}

}  // namespace convoy::generate
