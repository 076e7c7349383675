// SPDX-License-Identifier: Apache-2.0
//
// error.json in torchelastic's form: how a rank reports its error to the launcher. The launcher
// prints it, so a rank that has written it prints nothing more.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/base/error.h"

namespace convoy::processes {

// Writes {"message":{"message":SENTENCE,"extraInfo":{"timestamp":SECONDS}},"convoy":{...}}. Returns
// false when the file cannot be written.
bool write_error_file(const std::filesystem::path& path, const Error& error);

struct ErrorFile {
  std::string sentence;   // empty: there is no file, or it is not readable
  std::string json_line;  // empty unless a Convoy program wrote it
  std::string text;       // the whole file; empty unless it is a JSON object
};
ErrorFile read_error_file(const std::filesystem::path& path);

// A launcher that is itself a rank passes on the root cause's error file, as torchrun does: `text`
// goes to `path` with the exit code as message.errorCode. Returns false when it cannot be written.
bool hand_on_error_file(const std::filesystem::path& path, const std::string& text, int exit_code);

}  // namespace convoy::processes
