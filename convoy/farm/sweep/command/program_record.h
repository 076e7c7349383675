// SPDX-License-Identifier: Apache-2.0
//
// The circumstances of a cell: its working directory, its environment, and the files that computed
// it. These files are the program of its command and the scripts that the command names, each with
// a hash of its bytes. Files that a script reads or imports are not recorded. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {

class ProgramRecord {
 public:
  // A JSON object on one line:
  // {"environment":{..},"files":{"./train.py":"0f3a5c2e9d1b7468","python3":"..."},"folder":".."}.
  // The environment holds only variables that often change results, or that say where programs and
  // libraries are found. Names of files are as in argv. A file counts as a script when it is
  // executable, begins with "#!", has the ending of a script, or is the first file given to an
  // interpreter. So do a file named within a word (`sh -c "..."`) and a module of `python -m`.
  std::string of(const std::vector<std::string>& argv);

 private:
  // From stat(); equal values mean an unchanged file.
  struct Version {
    uint64_t device = 0, inode = 0;
    int64_t size_bytes = 0, modified_ns = 0, changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  struct Known {
    Version version;
    bool is_script = false;
    std::string hash;
  };
  const Known* known(const std::string& file);  // null: not a regular file that can be read

  std::map<std::string, Known> known_;
};

// Differences between the programs that computed the values of a sweep and the programs as they are
// now.
struct ChangedPrograms {
  std::set<std::string> files;    // files that have changed or are gone
  int64_t values = 0;             // values that were computed with the earlier files
  std::set<std::string> folders;  // folders of cells that ran in another folder than this one
  int64_t values_of_folders = 0;  // values that were computed in other folders
};
ChangedPrograms changed_programs(const SweepResults& results);

}  // namespace convoy::sweep
