// The shell and the escaping functions, without a browser.
#include "trireme/pages/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trireme/pages/files.h"

namespace trireme::pages {
namespace {

using testing::HasSubstr;

const std::string kNasty = "</script><!--<script>alert(1)</script>]]>\"\u2028&amp;'{{data}}";

TEST(Page, EscapesText) {
  EXPECT_EQ(escape_html("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_html("größer ≥ 1"), "größer ≥ 1");
}

TEST(Page, EscapedJsonIsTheSameJson) {
  const nlohmann::json value{{kNasty, kNasty}, {"plain", 1}};
  const std::string escaped = escape_json(value.dump());
  EXPECT_EQ(escaped.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(escaped), value);
}

TEST(Page, FillsTheShellOnce) {
  for (View view : {View::collective, View::pipeline, View::comparison, View::steps}) {
    const auto page = render(view, kNasty, nlohmann::json(kNasty).dump());
    EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
    EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;!--"));
    EXPECT_THAT(page, HasSubstr("{{data}}</title>"));  // what is filled in is not filled again
    EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
    // Nothing is fetched: no address but the name of SVG.
    EXPECT_EQ(page.find("src="), std::string::npos);
    const auto link = page.find("http");
    EXPECT_EQ(page.substr(link, 26), "http://www.w3.org/2000/svg");
    EXPECT_EQ(page.find("http", link + 1), std::string::npos);
  }
}

TEST(Page, HoldsTheFilesAsTheyAre) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TRIREME_SOURCE_DIR "/src/trireme/pages")) {
    const auto kind = entry.path().extension();
    if (kind != ".html" && kind != ".css" && kind != ".js") continue;
    std::stringstream source;
    source << std::ifstream(entry.path()).rdbuf();
    const auto found = std::ranges::find(files(), entry.path().filename().string(), &File::name);
    ASSERT_NE(found, files().end()) << entry.path();
    EXPECT_EQ(found->text, source.str()) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, files().size());
}

}  // namespace
}  // namespace trireme::pages
