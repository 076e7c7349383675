// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/parsing/any_reference.h"
#include "convoy/farm/process/pass_at_k.h"
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

using Json = nlohmann::ordered_json;

// The samples of a problem as they were drawn, before `improve`.
struct DrawnSamples {
  int64_t verified = 0;
  int64_t right = 0;
};

// None if some samples are not verified: behind `vote` the winner alone is, and it says little
// about the problem.
DrawnSamples drawn_samples(const RowState& row) {
  DrawnSamples drawn;
  for (const Candidate& candidate : row.candidates) {
    if (candidate.versions.empty()) continue;
    const Version& version = candidate.versions.front();
    if (version.finish == TextFinish::Error) continue;
    if (!version.verdict) return {};
    ++drawn.verified;
    drawn.right += version.verdict == answers::Verdict::Yes;
  }
  return drawn;
}

Json pass_at_k_column(const RowState& row) {
  const DrawnSamples drawn = drawn_samples(row);
  return pass_at_powers(drawn.verified, drawn.right);
}

Json difficulty_column(const RowState& row) {
  const DrawnSamples drawn = drawn_samples(row);
  if (drawn.verified == 0) return nullptr;
  return 1 - static_cast<double>(drawn.right) / static_cast<double>(drawn.verified);
}

Json difficulty_figure(const RowState& row, const Version* /*version*/) {
  return difficulty_column(row);
}

Json verified_figure(const RowState& /*row*/, const Version* version) {
  if (version == nullptr || !version->verdict) return nullptr;
  return answers::verdict_name(*version->verdict);
}

}  // namespace

Stage verify_stage() {
  return {.name = "verify",
          .summary = "compares answers with the reference's",
          .of_candidate = verify,
          .columns = {{"pass_at_k", pass_at_k_column}, {"difficulty", difficulty_column}},
          .figures = {{"verified", {"yes", "no", "unknown"}, verified_figure},
                      {"difficulty", {}, difficulty_figure}}};
}

}  // namespace convoy::process
