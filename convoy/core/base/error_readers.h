// SPDX-License-Identifier: Apache-2.0
//
// Who reads this program's errors on stderr. On a terminal a person does, or with --json a program;
// elsewhere it may be either, so both get theirs, the JSON object as the last line.
#pragma once

namespace convoy {

struct ErrorReaders {
  bool people = true;
  bool programs = true;
};

// `json`: --json was given.
ErrorReaders error_readers(bool json);

}  // namespace convoy
