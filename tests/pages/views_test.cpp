// The pages of collectives, pipelines and operators in a browser; that of compared runs is tested in tests/report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pages/browser.h"
#include "trireme/collective/draw/drawing.h"
#include "trireme/mesh/draw/page.h"
#include "trireme/ops/attention/draw/steps.h"
#include "trireme/ops/matmul/draw/steps.h"
#include "trireme/ops/recurrent/draw/steps.h"

namespace trireme {
namespace {

using nlohmann::json;
using test::show;
using testing::IsEmpty;

const std::string kPlanted = "</title></script><script>alert(1)</script>&amp;\"";

std::string collective_page(Collective what, const char* name, int ranks) {
  const Algorithm& algorithm = find_algorithm(what, name);
  const std::size_t count = has_blocks(what) ? 1 : ranks;
  const Call call{what, 0, ranks, 0, count, count};
  return draw_page(Trace(algorithm, call), algorithm, {kPlanted, "summary " + kPlanted, {{"fact", kPlanted}}});
}

// Steps by the button, moves by the slider, goes to the end by a key.
const char* const kStep = R"js(
  const now = () => document.querySelector('.now').textContent, said = [now()];
  const button = label => document.querySelector(`button[aria-label^="${label}"]`);
  button('Next').click();
  await new Promise(done => setTimeout(done, 2000));
  said.push(now());
  const slider = document.querySelector('input[type=range]');
  slider.value = 3;
  slider.dispatchEvent(new Event('input'));
  said.push(now());
  document.dispatchEvent(new KeyboardEvent('keydown', {key: 'End'}));
  said.push(now());
  button('Light').click();
  probe.look();
  return {said, disabled: button('Next').disabled, done: document.querySelectorAll('.card.done').length,
    rows: document.querySelectorAll('tbody tr').length, title: document.title,
    heading: document.querySelector('h1').textContent, theme: document.documentElement.dataset.theme};
)js";

TEST(Views, ACollectiveIsSteppedThrough) {
  TRIREME_NEEDS_BROWSER();
  auto shown = show(collective_page(Collective::all_reduce, "ring", 4), kStep);
  EXPECT_THAT(shown.errors, IsEmpty());
  EXPECT_EQ(shown.found["said"], (json{"Start", "Round 1 of 6", "Round 3 of 6", "Round 6 of 6"}));
  EXPECT_EQ(shown.found["disabled"], true);
  EXPECT_EQ(shown.found["done"], 4);
  EXPECT_EQ(shown.found["rows"], 4);
  EXPECT_EQ(shown.found["title"], kPlanted);
  EXPECT_EQ(shown.found["heading"], kPlanted);
  EXPECT_EQ(shown.found["theme"], "dark");
}

TEST(Views, ACollectiveFitsANarrowWindow) {
  TRIREME_NEEDS_BROWSER();
  auto shown = show(collective_page(Collective::broadcast, "tree", 7), kStep, 500, "round=1&theme=dark");
  EXPECT_THAT(shown.errors, IsEmpty());
  EXPECT_EQ(shown.found["said"], (json{"Round 1 of 2", "Round 2 of 2", "Round 2 of 2", "Round 2 of 2"}));
  EXPECT_EQ(shown.found["done"], 7);
  EXPECT_EQ(shown.found["theme"], "light");
}

TEST(Views, APipelineIsFollowed) {
  TRIREME_NEEDS_BROWSER();
  auto shown = show(pipelines::draw_page(pipelines::picture_of("interleaved", 3, 6, 2, 1, 2)), R"js(
      const cell = document.querySelector('.cell');
      const on = () => document.querySelectorAll('.cell.on').length;
      cell.dispatchEvent(new MouseEvent('mousemove', {clientX: 50, clientY: 50}));
      const pointed = [on(), tip.hidden, tip.innerText];
      cell.dispatchEvent(new MouseEvent('mouseleave'));
      const left = [on(), tip.hidden];
      cell.dispatchEvent(new MouseEvent('click', {bubbles: true}));
      probe.look();
      return {pointed, left, clicked: on(), cells: document.querySelectorAll('.cell').length,
        heading: document.querySelector('h1').textContent,
        rows: [...document.querySelectorAll('tbody')].map(body => body.rows.length)};
  )js",
                    500);
  EXPECT_THAT(shown.errors, IsEmpty());
  // A micro-batch is computed forward and backward in 3 stages of 2 chunks.
  EXPECT_EQ(shown.found["pointed"][0], 12);
  EXPECT_EQ(shown.found["pointed"][1], false);
  EXPECT_EQ(shown.found["pointed"][2], "micro-batch 0: forward\nstage 0, chunk 0: part 0 of 6\nfrom 0 to 0.5");
  EXPECT_EQ(shown.found["left"], (json{0, true}));
  EXPECT_EQ(shown.found["clicked"], 12);
  EXPECT_EQ(shown.found["cells"], 72);
  EXPECT_EQ(shown.found["heading"], "interleaved on 3 stages of 2 chunks with 6 micro-batches");
  EXPECT_EQ(shown.found["rows"], (json{3, pipelines::kinds().size()}));
}

TEST(Views, AnOperatorShowsItsSteps) {
  TRIREME_NEEDS_BROWSER();
  ops::OpDrawing drawing{kPlanted,
                         "summary " + kPlanted,
                         {{"first " + kPlanted, {{"label " + kPlanted, {{"1", "2"}, {"3", kPlanted}}}}},
                          {"second", {{"a", {{"4"}}}, {"b", {{"5", "6"}}, {{210, -1}}}}}}};
  auto shown = show(ops::drawing_page(drawing), R"js(
    probe.look();
    return {sections: document.querySelectorAll('section').length, title: document.title,
      caption: document.querySelector('caption').textContent,
      coloured: document.querySelectorAll('td[style]').length,
      cells: [...document.querySelectorAll('td')].map(cell => cell.textContent)};
  )js");
  EXPECT_THAT(shown.errors, IsEmpty());
  EXPECT_EQ(shown.found["sections"], 2);
  EXPECT_EQ(shown.found["title"], kPlanted);
  EXPECT_EQ(shown.found["caption"], "label " + kPlanted);
  EXPECT_EQ(shown.found["cells"], (json{"1", "2", "3", kPlanted, "4", "5", "6"}));
  EXPECT_EQ(shown.found["coloured"], 1);
}

TEST(Views, OperatorsFitANarrowWindow) {
  TRIREME_NEEDS_BROWSER();
  const ops::RecurrentShape lstm{.layers = 3, .input = 4, .hidden = 5, .steps = 12, .batch = 4};
  for (const ops::OpDrawing& drawing :
       {ops::draw_matmul(60, 100, 600), ops::draw_lstm(lstm, 2).drawing, ops::draw_attention(200, 8, true).drawing}) {
    auto shown = show(ops::drawing_page(drawing), R"js(
      return {sections: document.querySelectorAll('section').length,
        coloured: document.querySelectorAll('td[style]').length};
    )js",
                      500);
    EXPECT_THAT(shown.errors, IsEmpty()) << drawing.title;
    EXPECT_EQ(shown.found["sections"], drawing.steps.size());
    EXPECT_GT(shown.found["coloured"], 0) << drawing.title;
  }
}

}  // namespace
}  // namespace trireme
