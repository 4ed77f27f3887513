#include "platform/place_list.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace spw::platform {
namespace {

using Names = std::vector<std::string>;

TEST(PlaceList, names_are_taken_apart_at_commas_and_put_together_again) {
  for (const auto& [value, names] : std::vector<std::pair<std::string, Names>>{
           {"/no/a,/no/b", {"/no/a", "/no/b"}},
           {"/no/a%2Cb,/no/c", {"/no/a,b", "/no/c"}},
           {"sparse:/no/a?size=1G,nbd://host/x,/no/c", {"sparse:/no/a?size=1G", "nbd://host/x", "/no/c"}},
           {"/no/a,striped:/no/b%2C/no/c", {"/no/a", "striped:/no/b,/no/c"}},
           {"/no/a,,/no/b,", {"/no/a", "", "/no/b", ""}},
           {",", {"", ""}}}) {
    EXPECT_EQ(split_places(value), names) << value;
    EXPECT_EQ(join_places(names), value);
  }
}

TEST(PlaceList, one_place_stays_as_it_is) {
  for (const std::string value : {"", "/no/a", "/no/a%2Cb", "striped:/no/a,/no/b", "striped:chunk=1M,a,b"})
    EXPECT_EQ(split_places(value), Names{value});
}

TEST(PlaceList, what_is_there_with_a_comma_in_its_name_is_one_place) {
  std::string made = ::testing::TempDir() + "spw_places.XXXXXX";
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  std::filesystem::create_directory(made + "/a,b");
  std::ofstream(made + "/f,g") << "x";
  for (const std::string& value : {made + "/a,b", "spill:" + made + "/a,b", "sparse:" + made + "/a,b?size=1G",
                                   "file:" + made + "/f,g", "file:" + made + "/f,g?overwrite=yes"})
    EXPECT_EQ(split_places(value), Names{value});
  for (const std::string& value :
       {made + "/f,g", made + "/a,b,c", "file:" + made + "/f,h", "sparse:" + made + "/a%2Cb?size=1G,/no/b"})
    EXPECT_GT(split_places(value).size(), 1u) << value;
  std::filesystem::remove_all(made);
}

}  // namespace
}  // namespace spw::platform
