// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/any_reference.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {

void verify_version(const RowState& row, Version& version) {
  if (row.golds.empty() || version.finish == TextFinish::Error) return;
  version.verdict =
      version.answer ? verdict_on(row.golds, *version.answer) : answers::Verdict::Unknown;
}

namespace {

void verify(const StageInputs&, const RowState& row, Candidate& candidate) {
  for (Version& version : candidate.versions) verify_version(row, version);
}

nlohmann::ordered_json verified_figure(const RowState& /*row*/, const Version* version) {
  if (version == nullptr || !version->verdict) return nullptr;
  return answers::verdict_name(*version->verdict);
}

}  // namespace

Stage verify_stage() {
  return {.name = "verify",
          .summary = "compares answers with the reference's",
          .of_candidate = verify,
          .figures = {{"verified", {"yes", "no", "unknown"}, verified_figure}}};
}

}  // namespace convoy::process
