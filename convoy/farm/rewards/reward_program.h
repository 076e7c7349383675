// SPDX-License-Identifier: Apache-2.0
//
// A program that gives rewards: it reads one line of JSON per text on its stdin, and writes one
// number per line on its stdout, in the same order. It is started once and runs until the object
// is destroyed. Its stderr is passed on. One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/farm/rewards/reward.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::rewards {

// Seconds without a number. They count from the last number of the step; before its first number
// from the moment the program could read the step's lines, which of the first step is the moment it
// begins to read, perhaps after many imports.
struct ProgramLimits {
  double number_seconds = 60;
  double start_seconds = 600;
};

// A line without a number, and what the program said about it.
struct ProgramFault {
  size_t text = 0;  // place in the step of the text that has no number
  std::string what;
  bool moves_numbers = false;  // the numbers of this step may belong to other texts of it
};

class RewardProgram {
 public:
  // `command`: a line for the shell. Throws as processes::start_child(), whose rule on threads
  // holds.
  RewardProgram(const std::string& command, ProgramLimits limits);
  // Ends the program's stdin, and two seconds later the program and the processes that it started.
  ~RewardProgram();
  RewardProgram(const RewardProgram&) = delete;
  RewardProgram& operator=(const RewardProgram&) = delete;

  // `lines`: one line of JSON per text, without line breaks. Calls `take` with the place of a line
  // and its number, in their order, as the program gives them. Returns a fault for a line that is
  // no finite number, too many or too few lines, a pipe that the program closed while it is needed,
  // an end of the program and a limit that passed; then the program has been ended. Calls `check`
  // about every second; what it and `take` throw ends the program too. Blocks.
  std::optional<ProgramFault> ask(const std::vector<std::string>& lines, const TakeValue& take,
                                  const std::function<void()>& check);

 private:
  using Clock = std::chrono::steady_clock;
  struct Question;

  std::optional<ProgramFault> exchange(Question& question, const std::function<void()>& check);
  void read_output();
  std::string surplus() const;  // "wrote more lines ...", with the first of them
  std::optional<ProgramFault> take_lines(Question& question);
  std::optional<ProgramFault> fault_of_surplus(const Question& question);
  std::optional<ProgramFault> fault_of_end(const Question& question);
  std::optional<ProgramFault> fault_of_closing(const Question& question);
  std::optional<ProgramFault> fault_of_time(const Question& question) const;
  void send(Question& question);
  void listen(const Question& question);
  void pass_errors_on(std::string_view text);
  void end();
  ProgramFault with_words(ProgramFault fault) const;

  ProgramLimits limits_;
  processes::ChildProcess process_;
  Descriptor input_;
  std::string output_;  // behind the last line that was read
  std::string errors_tail_;
  bool has_begun_ = false;  // it has taken a line
  bool has_closed_input_ = false;
  bool has_ended_ = false;
  bool is_reaped_ = false;
  processes::ChildEnd status_;
};

}  // namespace convoy::rewards
