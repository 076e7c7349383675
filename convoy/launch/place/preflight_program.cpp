// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/launch/place/preflight.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::launch {

Finding program_finding(const std::string& program, const std::string& script) {
  if (const processes::ProgramProblem problem = processes::program_problem(program); problem.any())
    return {Severity::Error, "program", problem.found, problem.to_do};
  if (!script.empty() && ::access(script.c_str(), R_OK) != 0)
    return {Severity::Error, "program",
            fmt::format("`{}` cannot be read: {}", script, std::strerror(errno)),
            "name a script that exists"};
  return {Severity::Ok, "program",
          script.empty() ? processes::program_file(program).string() : script + " can be read", ""};
}

}  // namespace convoy::launch
