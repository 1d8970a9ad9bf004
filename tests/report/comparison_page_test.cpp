// The page of compared runs, as a browser shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pages/browser.h"
#include "tests/report/comparison_samples.h"
#include "trireme/report/compare/comparison_text.h"

namespace trireme::train {
namespace {

using nlohmann::json;
using testing::IsEmpty;

// Hides a variant by its name, changes what is drawn, opens all runs.
const char* const kLook = R"js(
  const drawn = () => document.querySelectorAll('.plot svg').length, paths = () => document.querySelectorAll('.plot path').length;
  const before = paths();
  document.querySelector('.legend button').click();
  const hidden = paths();
  document.querySelector('.legend button').click();
  for (const button of document.querySelectorAll('.pick button')) button.click();
  for (const list of document.querySelectorAll('details')) list.open = true;
  const chart = document.querySelector('.plot svg');
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + box.width / 2, clientY: box.y + 50}));
  probe.look();
  return {title: document.title, heading: document.querySelector('h1').textContent, drawn: drawn(),
    fewer: hidden < before, again: paths() >= before, tip: tip.hidden ? '' : tip.innerText,
    rows: [...document.querySelectorAll('tbody')].map(body => body.rows.length),
    first: document.querySelector('tbody tr').innerText, all: document.body.innerText};
)js";

TEST(ComparisonPage, ShowsWhatWasMeasured) {
  TRIREME_NEEDS_BROWSER();
  auto shown = test::show(comparison_page(costly()), kLook);
  EXPECT_THAT(shown.errors, IsEmpty());
  EXPECT_EQ(shown.found["title"], "Compared: strategy");
  EXPECT_EQ(shown.found["heading"], "Compared: strategy");
  EXPECT_EQ(shown.found["drawn"], 10);  // six of any comparison, four of what synchronizing costs
  EXPECT_EQ(shown.found["fewer"], true);
  EXPECT_EQ(shown.found["again"], true);
  EXPECT_THAT(shown.found["tip"].get<std::string>(), testing::HasSubstr("90.00%"));
  EXPECT_EQ(shown.found["rows"], (json{2, 2}));  // variants, runs
  EXPECT_THAT(shown.found["first"].get<std::string>(), testing::HasSubstr("90.00%"));
  EXPECT_THAT(shown.found["first"].get<std::string>(), testing::HasSubstr("24.0 MB"));
}

TEST(ComparisonPage, ShowsNamesAsTheyAre) {
  TRIREME_NEEDS_BROWSER();
  const std::string planted = "</title></script><!--<script>alert(1)</script>\"&amp;'";
  auto comparison = plan_comparison({}, {{"model-arg." + planted, planted, "2"}}, 1);
  comparison.base.data = planted;
  comparison.base.model = planted;
  comparison.put(finished(0, 1, 0.5, 0.6));
  auto run = finished(1, 1, 0.5, 0.6);
  run.status = "failed";
  run.error = planted;
  comparison.put(run);
  auto shown = test::show(comparison_page(comparison), kLook, 500, "theme=dark");
  EXPECT_THAT(shown.errors, IsEmpty());
  EXPECT_EQ(shown.found["title"], "Compared: model-arg." + planted);
  const auto text = shown.found["all"].get<std::string>();
  for (const auto& words : {"Compared: model-arg." + planted, "on " + planted, "failed: " + planted}) {
    EXPECT_THAT(text, testing::HasSubstr(words));
  }
}

TEST(ComparisonPage, EscapesWhatItIsGiven) {
  const std::string nasty = "</script><!--<script>alert(1)</script>\"&'";
  auto comparison = plan_comparison({}, {{"model-arg." + nasty, nasty}}, 1);
  comparison.base.data = nasty;
  auto run = finished(0, 1, 0.5, 0.6);
  run.error = nasty;
  comparison.put(run);
  auto page = comparison_page(comparison);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  EXPECT_THAT(page, testing::HasSubstr("<title>Compared: model-arg.&lt;/script&gt;&lt;!--"));
  // What is between the tags is still the same JSON.
  const std::string begin = "id=\"data\">";
  auto from = page.find(begin) + begin.size();
  auto data = json::parse(page.substr(from, page.find("</script>", from) - from));
  EXPECT_EQ(data["runs"][0]["error"], nasty);
  EXPECT_EQ(data["variants"][0]["values"][0], nasty);
  // One file: nothing is fetched.
  EXPECT_EQ(page.find("src="), std::string::npos);
}

}  // namespace
}  // namespace trireme::train
