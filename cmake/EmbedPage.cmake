# The page of `convoy runs serve` as a C++ source: ASSETS/page.html with page.css and the PROGRAMS
# inside, in their order, written to CPP.
file(READ ${ASSETS}/page.html _page)
file(READ ${ASSETS}/page.css _style)
set(_program "")
foreach(_part IN LISTS PROGRAMS)
  file(READ ${ASSETS}/${_part} _text)
  string(APPEND _program "${_text}\n")
endforeach()
string(REPLACE "/*STYLE*/" "${_style}" _page "${_page}")
string(REPLACE "/*PROGRAM*/" "${_program}" _page "${_page}")
file(WRITE ${CPP}.new "#include \"convoy/apps/page/page_assets.h\"\n
static constexpr std::string_view kPage = R\"page(${_page})page\";
std::string convoy::page::page_html(std::string_view nonce) {
  constexpr std::string_view kMark = \"/*NONCE*/\";
  std::string page;
  size_t at = 0;
  for (size_t mark = 0; (mark = kPage.find(kMark, at)) != std::string_view::npos; at = mark + kMark.size())
    page.append(kPage, at, mark - at).append(nonce);
  return page.append(kPage, at);
}
")
file(RENAME ${CPP}.new ${CPP})
