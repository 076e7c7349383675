// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank that did not enter a collective, from the records of all ranks. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record.h"

namespace convoy::launch {

enum class DiagnosisKind {
  NothingRecorded,  // no rank has a record: programs without one, or before the first collective
  AllIdle,          // no collective is open
  Missing,          // ranks wait in a collective that others never entered
  EndedEarly,       // as Missing, and the others have ended
  Differs,          // at one sequence number ranks entered different collectives
  Crossed,          // ranks wait for each other in different groups
  AllInside,        // every known rank is inside the same collective
};

struct CollectiveDiagnosis {
  DiagnosisKind kind = DiagnosisKind::NothingRecorded;
  std::vector<int> ranks;  // the ranks at fault, ascending; empty when none is
  std::string group;
  std::string operation;
  int64_t sequence = -1;
  std::string text;  // one to three sentences for a person; empty for NothingRecorded
};

// One entry per rank, in any order; ranks of other hosts too if they are known.
CollectiveDiagnosis diagnose_collectives(const std::vector<telemetry::RankFlight>& flights);

// The sentence to add to the end of a job that has another cause; empty where no rank waits for
// another.
std::string blame_text(const CollectiveDiagnosis& diagnosis);

// {"kind","ranks","group","operation","sequence","text"}; "" for NothingRecorded.
std::string diagnosis_json(const CollectiveDiagnosis& diagnosis);

}  // namespace convoy::launch
