// SPDX-License-Identifier: Apache-2.0
//
// The kinds of rewards, called by rewards.cpp: a maker of each, and a check (check_reward) of each
// kind that names files, a program or an address.
#pragma once

#include <memory>

#include "convoy/farm/rewards/reward.h"

namespace convoy::rewards {

// 1 for a text whose answer the checker finds equal to a reference answer, else 0: no, and unknown.
std::unique_ptr<Reward> make_answer_reward(const settings::RewardSettings& settings);
std::string use_of_compared_answers(const settings::RewardSettings& settings);

// 1 for a text that is JSON of the schema, or that the pattern matches whole; else 0.
std::unique_ptr<Reward> make_format_reward(const settings::RewardSettings& settings);
void check_format_reward(const settings::RewardSettings& settings);

// 1 up to target_tokens, 0 from most_tokens on, linear between them; as a punishment, that minus 1:
// DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13).
std::unique_ptr<Reward> make_length_reward(const settings::RewardSettings& settings);

// The numbers that a program writes, which runs as long as the reward lives.
std::unique_ptr<Reward> make_command_reward(const settings::RewardSettings& settings);
void check_command_reward(const settings::RewardSettings& settings);

// The numbers that a server answers.
std::unique_ptr<Reward> make_http_reward(const settings::RewardSettings& settings);
void check_http_reward(const settings::RewardSettings& settings);

// The score of 0 to 1 in the reply of a model behind OpenAI's HTTP API.
std::unique_ptr<Reward> make_judge_reward(const settings::RewardSettings& settings);
void check_judge_reward(const settings::RewardSettings& settings);
// The columns that the prompt names as {{ row.COLUMN }}, and what it does with {{ answer }}.
std::vector<std::string> columns_of_judge(const settings::RewardSettings& settings);
std::string use_of_judged_answers(const settings::RewardSettings& settings);

}  // namespace convoy::rewards
