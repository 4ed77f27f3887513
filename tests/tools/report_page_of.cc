// report_page_of < DATA.json > PAGE.html: the page of --report without a run, for tests/tools/report_page_test.py.
#include <iostream>
#include <iterator>

#include "report_page.h"

int main() {
  const std::string json{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::cout << spw::tool::report_page(json) << std::flush;
  return std::cout ? 0 : 1;
}
