#include "trireme/mesh/draw/page.h"

namespace trireme::pipelines {

const char kPageStyle[] = R"css(
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --panel: #ffffff; --ink: #1d2433; --soft: #5d6880; --line: #d9dee8; --empty: #edf0f5;
  --f: #4c7fe0; --b: #17886a; --w: #e2a33a; --on-f: #fff; --on-b: #fff; --on-w: #3b2706; --u: #c2335b;
  --stripe: #dfe4ed; --accent: #2f5fd0;
}
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748; --empty: #212937;
  --f: #5b8def; --b: #2ea583; --w: #e6b455; --on-f: #0b1220; --on-b: #06150f; --on-w: #2a1c04; --u: #ff6f91;
  --stripe: #2b3445; --accent: #7fa6ff;
} }
:root[data-theme=dark] {
  color-scheme: dark;
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748; --empty: #212937;
  --f: #5b8def; --b: #2ea583; --w: #e6b455; --on-f: #0b1220; --on-b: #06150f; --on-w: #2a1c04; --u: #ff6f91;
  --stripe: #2b3445; --accent: #7fa6ff;
}
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
html { overflow-y: scroll; }  /* so that the charts know their width */
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 22px 24px 40px; display: grid; gap: 14px; }
h1 { font-size: 24px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 12px; text-transform: uppercase; letter-spacing: .07em; color: var(--soft); margin: 0 0 10px; font-weight: 600; }
.summary { color: var(--soft); margin: 0; max-width: 80ch; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; min-width: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px; }
.tile b { display: block; font-size: 24px; line-height: 1.25; letter-spacing: -.01em; font-weight: 650; }
.tile small { color: var(--soft); font-size: 13px; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.35fr); gap: 14px; align-items: start; }
@media (max-width: 860px) { .columns { grid-template-columns: minmax(0, 1fr); } }
.scroll { overflow-x: auto; }
svg { display: block; }
svg text { font-family: inherit; }
.stage { font-size: 13px; font-weight: 600; fill: var(--ink); }
.axis { font-size: 11px; fill: var(--soft); }
.grid { stroke: var(--line); stroke-width: 1; }
.lane { fill: url(#idle); }
.cell { cursor: pointer; }
.cell rect { rx: 3px; stroke: var(--panel); stroke-width: 1; }
.cell text { font-weight: 600; text-anchor: middle; dominant-baseline: central; pointer-events: none; }
.f { --mine: var(--f); --on: var(--on-f); } .b { --mine: var(--b); --on: var(--on-b); } .w { --mine: var(--w); --on: var(--on-w); }
.cell rect { fill: var(--mine); } .cell text { fill: var(--on); }
.picked .cell:not(.on) rect { fill: color-mix(in oklab, var(--mine) 22%, var(--panel)) !important; }
.picked .cell:not(.on) text { fill: var(--soft) !important; opacity: .6; }
.update { stroke: var(--u); stroke-width: 2.5; stroke-linecap: round; }
.path { fill: none; stroke: var(--ink); stroke-width: 1.4; opacity: .75; pointer-events: none; stroke-linejoin: round; }
.held { fill: var(--accent); opacity: .22; } .held-line { fill: none; stroke: var(--accent); stroke-width: 1.6; }
.bound { stroke: var(--soft); stroke-dasharray: 3 3; stroke-width: 1; }
.legend { display: flex; flex-wrap: wrap; gap: 6px 18px; color: var(--soft); font-size: 13px; margin-top: 10px; align-items: center; }
.legend span { display: inline-flex; gap: 6px; align-items: center; }
.legend i { width: 22px; height: 14px; border-radius: 3px; display: inline-block; }
.legend .swatch-idle { background: repeating-linear-gradient(45deg, var(--empty) 0 4px, var(--stripe) 4px 8px); }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: right; color: var(--soft); font-weight: 600; font-size: 12.5px; padding: 3px 8px; }
td { text-align: right; white-space: nowrap; padding: 4px 8px; border-top: 1px solid var(--line); font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
tr.on td { font-weight: 650; } tr.on td:first-child { color: var(--accent); }
td.bar { width: 26%; } td.bar div { height: 10px; border-radius: 5px; background: var(--empty); overflow: hidden; min-width: 60px; }
td.bar div i { display: block; height: 100%; background: var(--accent); border-radius: 5px; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 14px; margin: 12px 0 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; }
#tip { position: fixed; z-index: 5; pointer-events: none; background: var(--ink); color: var(--back); border-radius: 8px;
  padding: 6px 10px; font-size: 13px; line-height: 1.4; max-width: 300px; display: none; box-shadow: 0 4px 16px #0004; }
#tip b { display: block; }
)css";

}  // namespace trireme::pipelines
