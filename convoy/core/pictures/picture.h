// SPDX-License-Identifier: Apache-2.0
//
// Figures as files. A figure is written once, as SVG text; PNG and PDF are drawn from that text by
// the Rust library, with letters of its own, so that they are the same on every machine.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::pictures {

// True when this build can draw `file`, a picture that the user did not ask for. Logs a line when
// it cannot.
bool can_draw(const Log& log, const std::filesystem::path& file);

// Throws ConfigError when `file`, the value of `flag`, does not end in .svg, .png or .pdf, or when
// this build cannot draw it.
void require_picture_name(const std::string& flag, const std::filesystem::path& file);

// Returns `svg` in the format that the ending of `file` names; writes no file. A pixel of SVG
// becomes a pixel of PNG, or 1/96 inch of PDF.
std::string picture_for(const std::filesystem::path& file, const std::string& svg);

// Warns of the letters of `svg` that a PNG or PDF `file` shows as boxes.
void warn_of_boxes(const Log& log, const std::filesystem::path& file, const std::string& svg);

}  // namespace convoy::pictures
