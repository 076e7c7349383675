// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/stages/stage.h"

namespace convoy::process {

void verify_version(const RowState& row, Version& version) {
  if (!row.gold || version.finish == TextFinish::Error) return;
  // A text without an answer in it is not known to be wrong, unless it was written to its end.
  if (!version.answer) {
    version.verdict = version.finish == TextFinish::Stop && !version.text.is_open
                          ? answers::Verdict::No
                          : answers::Verdict::Unknown;
    return;
  }
  version.verdict = answers::check_answer(*row.gold, *version.answer);
}

void verify(const StageInputs&, const RowState& row, SampleState& sample) {
  for (Version& version : sample.versions) verify_version(row, version);
}

}  // namespace convoy::process
