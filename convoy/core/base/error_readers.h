// SPDX-License-Identifier: Apache-2.0
//
// The readers of this program's errors on stderr. On a terminal the reader is a person, or with
// --json a program. Elsewhere the reader may be a person or a program, so both forms are written,
// with the JSON object as the last line.
#pragma once

namespace convoy {

struct ErrorReaders {
  bool people = true;
  bool programs = true;
};

// `json`: --json was given.
ErrorReaders error_readers(bool json);

}  // namespace convoy
