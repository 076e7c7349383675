# The page of `convoy runs serve` as a C++ source: ASSETS/page.html with page.css and page.js inside, written to CPP.
file(READ ${ASSETS}/page.html _page)
file(READ ${ASSETS}/page.css _style)
file(READ ${ASSETS}/page.js _program)
string(REPLACE "/*STYLE*/" "${_style}" _page "${_page}")
string(REPLACE "/*PROGRAM*/" "${_program}" _page "${_page}")
file(WRITE ${CPP}.new "#include \"convoy/page/page_assets.h\"\n
static constexpr std::string_view kPage = R\"page(${_page})page\";
std::string_view convoy::page::page_html() { return kPage; }
")
file(RENAME ${CPP}.new ${CPP})
