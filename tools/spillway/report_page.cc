#include "report_page.h"

#include "base/check.h"

extern "C" {
// Of report/page.S.
extern const char spw_report_page_begin[], spw_report_page_end[];
}

namespace spw::tool {

namespace {

// Where the data goes. The assembly of the page sees to it that it is there once.
constexpr std::string_view kDataMark = "@DATA@";

// JSON that can stand inside a <script> element: the browser looks there for "</script" and "<!--" without knowing of
// strings, so no "<" stays; and older scripts took U+2028 and U+2029 for ends of lines. All of these occur in JSON only
// within strings, where an escape means the same.
std::string within_script(std::string_view json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (size_t at = 0; at < json.size(); ++at) {
    const std::string_view rest = json.substr(at);
    if (rest[0] == '<') {
      text += "\\u003c";
    } else if (rest[0] == '>') {
      text += "\\u003e";
    } else if (rest[0] == '&') {
      text += "\\u0026";
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      text += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      text += rest[0];
    }
  }
  return text;
}

}  // namespace

std::string report_page(std::string_view json) {
  const std::string_view page(spw_report_page_begin,
                              static_cast<size_t>(spw_report_page_end - spw_report_page_begin));
  const size_t mark = page.find(kDataMark);
  SPW_CHECK(mark != page.npos);
  std::string whole;
  whole.reserve(page.size() + json.size() + json.size() / 64);
  whole.append(page.substr(0, mark));
  whole.append(within_script(json));
  whole.append(page.substr(mark + kDataMark.size()));
  return whole;
}

}  // namespace spw::tool
