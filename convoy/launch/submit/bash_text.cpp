// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/bash_text.h"

#include <fmt/format.h>

#include "convoy/launch/submit/quoting.h"

namespace convoy::launch {

std::string shell_exports(const SubmitSettings& settings) {
  std::string text;
  for (const TravellingVariable& variable : travelling_variables(settings))
    if (variable.has_value)
      text += fmt::format("export {}={}\n", variable.name, shell_word(variable.value));
  return text;
}

std::string wait_for(const std::string& process) {
  // When a trap interrupts `wait`, bash loses the exit code of a process that ends at this moment
  // (bash 5.2: every later wait gives -1). The code may be 75, which requeues the job. A command in
  // the foreground is not interrupted.
  return fmt::format(
      R"sh(# Polled: bash can forget the code of a child when a trap interrupts `wait`.
while kill -0 "${0}" 2>/dev/null; do
  sleep 0.5
done
wait "${0}"
code=$?
)sh",
      process);
}

}  // namespace convoy::launch
