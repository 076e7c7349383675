// SPDX-License-Identifier: Apache-2.0
//
// Figures as files. A figure is written once, as SVG text; PNG and PDF are drawn from that text by
// the Rust library, with letters of its own, so that they are the same on every machine.
#pragma once

#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"

namespace convoy::pictures {

// Whether this build draws `file`, which nobody named; says so where it does not.
bool can_draw(const Log& log, const std::filesystem::path& file);

// Throws ConfigError where `file`, which `flag` named, does not end in .svg, .png or .pdf, or this
// build does not draw it.
void require_picture_name(const std::string& flag, const std::filesystem::path& file);

// `svg` in the format that the ending of `file` names; nothing is written. A pixel of SVG is one of
// PNG, 1/96 inch of PDF.
std::string picture_for(const std::filesystem::path& file, const std::string& svg);

// Warns of the letters of `svg` that are boxes in `file`, where that is PNG or PDF.
void warn_of_boxes(const Log& log, const std::filesystem::path& file, const std::string& svg);

}  // namespace convoy::pictures
