#include "trireme/collective/draw/page.h"

namespace trireme {

const char kPageStyle[] = R"css(
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --panel: #ffffff; --ink: #1d2433; --soft: #5d6880; --line: #d9dee8;
  --empty: #edf0f5; --done: #12805c; --done-back: #d9f2e6; --accent: #2f5fd0; --glow: #ffb020;
  --sat: 62%; --light: 58%;
}
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748;
  --empty: #262e3d; --done: #4fd1a1; --done-back: #173b30; --accent: #7fa6ff; --glow: #ffc857;
  --sat: 55%; --light: 60%;
} }
:root[data-theme=dark] {
  color-scheme: dark;
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748;
  --empty: #262e3d; --done: #4fd1a1; --done-back: #173b30; --accent: #7fa6ff; --glow: #ffc857;
  --sat: 55%; --light: 60%;
}
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 20px 24px 40px; }
header { display: flex; gap: 16px; align-items: flex-start; justify-content: space-between; margin-bottom: 14px; }
h1 { font-size: 24px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 12px; text-transform: uppercase; letter-spacing: .07em; color: var(--soft); margin: 0 0 8px; font-weight: 600; }
.summary { color: var(--soft); margin: 0; max-width: 75ch; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 300px; gap: 14px; align-items: start; }
.side { display: grid; gap: 14px; min-width: 0; }
@media (max-width: 900px) { .columns { grid-template-columns: minmax(0, 1fr); } main { padding: 14px; } }
.stage { padding: 8px; }
.stage svg { display: block; width: 100%; height: auto; max-height: 66vh; }
.controls { display: flex; align-items: center; gap: 6px; padding: 4px 8px 8px; flex-wrap: wrap; }
.controls input[type=range] { flex: 1; min-width: 120px; accent-color: var(--accent); }
button { font: inherit; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px;
  min-width: 38px; height: 36px; padding: 0 11px; cursor: pointer; }
button:hover { border-color: var(--accent); }
button.main { background: var(--accent); border-color: var(--accent); color: var(--panel); font-weight: 600; min-width: 76px; }
button:disabled { opacity: .4; cursor: default; border-color: var(--line); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.now { font-size: 18px; font-weight: 650; margin: 0 0 4px; }
.say { margin: 0; min-height: 4.5em; }
ul.moves { list-style: none; margin: 10px 0 0; padding: 8px 0 0; border-top: 1px solid var(--line); max-height: 210px; overflow: auto;
  font-size: 13px; font-variant-numeric: tabular-nums; }
ul.moves li { padding: 1px 0; } ul.moves b { font-weight: 600; }
dl { margin: 0; display: grid; grid-template-columns: auto 1fr; gap: 3px 12px; font-size: 13.5px; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 12px; font-size: 12.5px; color: var(--soft); padding: 2px 8px 6px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; vertical-align: -1px; }
.wide { margin-top: 14px; overflow-x: auto; }
.wide svg { display: block; }
table { border-collapse: separate; border-spacing: 3px; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; white-space: nowrap; color: var(--soft); font-size: 13px; padding-bottom: 6px; }
th { font-weight: 600; color: var(--soft); padding: 2px 8px; text-align: left; white-space: nowrap; }
td { background: var(--empty); border-radius: 5px; padding: 2px 8px; font-family: ui-monospace, "DejaVu Sans Mono", monospace; text-align: center; white-space: pre; }
td.done { background: var(--done-back); color: var(--done); font-weight: 600; }
td.new { box-shadow: inset 0 0 0 2px var(--glow); }
td.gap { background: none; width: 8px; padding: 0; }
/* the drawing */
.card { fill: var(--panel); stroke: var(--line); stroke-width: 1.5; }
.card.done { stroke: var(--done); stroke-width: 2; }
.tick { fill: none; stroke: var(--done); stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; }
.icon { vertical-align: -2px; fill: currentColor; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; }
.name { font-size: 13px; font-weight: 650; fill: var(--ink); }
.place { font-size: 10px; fill: var(--soft); }
.cell { fill: var(--empty); }
.frame { fill: none; stroke: none; }
.frame.done { stroke: var(--done); stroke-width: 2; }
.frame.new { stroke: var(--glow); stroke-width: 2.5; }
.frame.token { stroke: var(--ink); stroke-width: 1.2; }
.number { font-weight: 650; fill: var(--ink); text-anchor: middle; dominant-baseline: central; paint-order: stroke;
  stroke: var(--panel); stroke-width: 3px; stroke-linejoin: round; }
.number.faint { fill: var(--soft); opacity: .55; stroke: none; font-weight: 500; }
.arrow { fill: none; stroke: var(--soft); stroke-width: 1.8; opacity: .75; }
.arrow.read, .arrow.in { stroke-dasharray: 5 4; }
.tip { fill: var(--soft); opacity: .85; }
.lane { stroke: var(--line); } .lanes text { font-size: 11px; fill: var(--soft); }
.hop { fill: none; stroke: var(--soft); stroke-width: 1.2; opacity: .55; }
.hop.on { stroke: var(--accent); stroke-width: 2; opacity: 1; }
.band { fill: transparent; cursor: pointer; } .band:hover { fill: var(--empty); opacity: .6; } .band.on { fill: var(--accent); opacity: .12; }
)css";

}  // namespace trireme
