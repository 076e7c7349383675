// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/any_reference.h"
#include "convoy/process/stages/stage.h"

namespace convoy::process {

void verify_version(const RowState& row, Version& version) {
  if (row.golds.empty() || version.finish == TextFinish::Error) return;
  version.verdict =
      version.answer ? verdict_on(row.golds, *version.answer) : answers::Verdict::Unknown;
}

void verify(const StageInputs&, const RowState& row, SampleState& sample) {
  for (Version& version : sample.versions) verify_version(row, version);
}

}  // namespace convoy::process
