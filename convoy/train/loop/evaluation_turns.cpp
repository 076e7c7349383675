// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/evaluation_turns.h"

namespace convoy::train {

int64_t num_turns(int64_t num_rows, int64_t batch_size, const comm::Group& group) {
  const int64_t at_once = batch_size * group.size();
  return (num_rows + at_once - 1) / at_once;
}

std::vector<int64_t> rows_of_turn(int64_t turn, int64_t batch_size, int64_t num_rows,
                                  const comm::Group& group) {
  std::vector<int64_t> rows;
  for (int64_t index = turn * batch_size; index < (turn + 1) * batch_size; ++index)
    if (const int64_t row = group.rank() + index * group.size(); row < num_rows)
      rows.push_back(row);
  return rows;
}

bool StopQuestion::ask_after(int64_t turn) {
  if (!stop_requested_ || turn + 1 < next_) return false;
  const Clock::time_point now = Clock::now();
  const bool quick = now - asked_ < std::chrono::milliseconds(500);
  const at::Tensor votes = at::zeros({2}, at::kLong);
  int64_t* const vote = votes.mutable_data_ptr<int64_t>();
  vote[0] = stop_requested_() ? 1 : 0;
  vote[1] = quick ? 1 : 0;
  group_.all_reduce_sum(votes);
  if (vote[1] == group_.size()) interval_ *= 2;
  next_ += interval_;
  asked_ = now;
  return vote[0] > 0;
}

}  // namespace convoy::train
