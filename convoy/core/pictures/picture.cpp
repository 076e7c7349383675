// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/pictures/picture.h"

#include "convoy/core/base/error.h"
#include "convoy/core/pictures/drawing.h"

namespace convoy::pictures {

bool can_draw(const Log& log, const std::filesystem::path& file) {
  if (has_drawing() || file.extension() == ".svg") return true;
  log.info(fmt::format("{} is left out: this build draws no PNG and PDF (`./run build` adds them)",
                       file.filename().string()));
  return false;
}

void require_picture_name(const std::string& flag, const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".svg" && ending != ".png" && ending != ".pdf")
    throw ConfigError(fmt::format("{} needs a file that ends in .svg, .png or .pdf, found `{}`",
                                  flag, file.string()),
                      {.key = flag, .hint = fmt::format("write {} picture.svg", flag)});
  if (ending != ".svg" && !has_drawing())
    throw ConfigError(
        "this build draws no PNG and PDF",
        {.file = file.string(),
         .key = flag,
         .hint = fmt::format("`./run build` adds them; or write {} picture.svg", flag)});
}

std::string picture_for(const std::filesystem::path& file, const std::string& svg) {
  const std::string ending = file.extension().string();
  if (ending == ".svg") return svg;
  CONVOY_INVARIANT(ending == ".png" || ending == ".pdf", "no pictures end in {}", ending);
  return drawn(ending == ".png" ? Drawn::Png : Drawn::Pdf, svg);
}

void warn_of_boxes(const Log& log, const std::filesystem::path& file, const std::string& svg) {
  if (file.extension() == ".svg" || !has_drawing()) return;
  const std::string letters = drawn(Drawn::UnknownLetters, svg);
  if (!letters.empty())
    log.warning(fmt::format(
        "{} has boxes for letters that Convoy's font lacks: {} (as .svg they are drawn by the font "
        "of whoever looks at it)",
        file.filename().string(), letters));
}

}  // namespace convoy::pictures
