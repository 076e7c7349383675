// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/pictures/picture.h"

#include <convoy_pictures.h>

#include "convoy/core/base/error.h"

namespace convoy::pictures {
namespace {

std::string take(ConvoyText text) {
  std::string copy(reinterpret_cast<const char*>(text.data), text.size);
  convoy_text_free(text);
  return copy;
}

using Drawn = int (*)(const uint8_t* svg, size_t size, ConvoyText* text, ConvoyText* error);

std::string drawn(Drawn draw, const std::filesystem::path& file, const std::string& svg) {
  ConvoyText text{}, error{};
  const int status = draw(reinterpret_cast<const uint8_t*>(svg.data()), svg.size(), &text, &error);
  CONVOY_INVARIANT(status == 0, "{} was not drawn: {}", file.string(), take(error));
  return take(text);
}

}  // namespace

void require_picture_name(const std::string& flag, const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".svg" && ending != ".png" && ending != ".pdf")
    throw ConfigError(fmt::format("{} needs a file that ends in .svg, .png or .pdf, found `{}`",
                                  flag, file.string()),
                      {.key = flag, .hint = fmt::format("write {} picture.svg", flag)});
}

std::string picture_for(const std::filesystem::path& file, const std::string& svg) {
  const std::string ending = file.extension().string();
  if (ending == ".svg") return svg;
  CONVOY_INVARIANT(ending == ".png" || ending == ".pdf", "no pictures end in {}", ending);
  return drawn(ending == ".png" ? convoy_picture_png : convoy_picture_pdf, file, svg);
}

void warn_of_boxes(const Log& log, const std::filesystem::path& file, const std::string& svg) {
  if (file.extension() == ".svg") return;
  const std::string letters = drawn(convoy_picture_unknown_letters, file, svg);
  if (!letters.empty())
    log.warning(fmt::format(
        "{} has boxes for letters that Convoy's font lacks: {} (as .svg they are drawn by the font "
        "of whoever looks at it)",
        file.filename().string(), letters));
}

}  // namespace convoy::pictures
