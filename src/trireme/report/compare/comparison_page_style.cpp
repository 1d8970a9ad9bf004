#include "trireme/report/compare/comparison_page.h"

namespace trireme::train {

// The colours keep apart for the usual kinds of colour blindness; shapes and dashes repeat what they say.
const char kComparisonStyle[] = R"css(
:root {
  color-scheme: light dark;
  --back: #f6f7f9; --panel: #ffffff; --ink: #1d2433; --soft: #5d6880; --line: #d9dee8; --grid: #e9edf3; --accent: #2f5fd0;
  --warn: #8a4b00; --warn-back: #fff3e0;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #c4609a; --c4: #c08a00; --c5: #6a4fb3; --c6: #6b7280; --c7: #8c510a;
  --p0: #0072b2; --p1: #56b4e9; --p2: #d55e00; --p3: #009e73; --p4: #a9b0bd;
}
@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748; --grid: #262e3d; --accent: #7fa6ff;
  --warn: #ffcf8a; --warn-back: #3a2a12;
  --c0: #56a6e8; --c1: #f08a3c; --c2: #2fc79a; --c3: #e58fc2; --c4: #f2c14e; --c5: #a991f0; --c6: #b4bccb; --c7: #c98f4e;
  --p0: #3f8fd6; --p1: #8fcdf5; --p2: #f08a3c; --p3: #2fc79a; --p4: #77829a;
} }
:root[data-theme=dark] {
  color-scheme: dark;
  --back: #11151d; --panel: #1a202c; --ink: #e8ecf4; --soft: #9aa6bd; --line: #2e3748; --grid: #262e3d; --accent: #7fa6ff;
  --warn: #ffcf8a; --warn-back: #3a2a12;
  --c0: #56a6e8; --c1: #f08a3c; --c2: #2fc79a; --c3: #e58fc2; --c4: #f2c14e; --c5: #a991f0; --c6: #b4bccb; --c7: #c98f4e;
  --p0: #3f8fd6; --p1: #8fcdf5; --p2: #f08a3c; --p3: #2fc79a; --p4: #77829a;
}
:root[data-theme=light] { color-scheme: light; }
* { box-sizing: border-box; }
model { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 20px 24px 40px; }
h1 { font-size: 24px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0; font-weight: 650; }
.summary { color: var(--soft); margin: 0 0 12px; max-width: 90ch; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: 13px; margin: 2px 0 6px; }
.warn { background: var(--warn-back); color: var(--warn); border-radius: 10px; padding: 8px 14px; margin: 0 0 12px; font-size: 14px; overflow-wrap: anywhere; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px; min-width: 0; }
.panel + .panel, .charts, .charts + .panel { margin-top: 14px; }
.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 14px; }
.charts .panel { margin: 0; display: flex; flex-direction: column; }
@media (max-width: 860px) { .charts { grid-template-columns: minmax(0, 1fr); } main { padding: 14px 12px 32px; } .panel { padding: 12px; } }
.charts .wide { grid-column: 1 / -1; }
.wide .note { max-width: 110ch; } .said { margin: 6px 0 0; } table.narrow { width: auto; margin-top: 8px; }
.head { display: flex; gap: 10px; align-items: baseline; justify-content: space-between; flex-wrap: wrap; }
.legend { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 6px; padding: 8px 0; margin: 0 0 6px; background: var(--back); max-height: 30vh; overflow: auto; }
.keys { display: flex; flex-wrap: wrap; gap: 3px 14px; font-size: 12.5px; color: var(--soft); margin: 4px 0 2px; }
.keys i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; vertical-align: -1px; }
button { font: inherit; font-size: 13px; color: var(--ink); background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 3px 10px; cursor: pointer; }
button:hover { border-color: var(--accent); }
button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.legend button { display: flex; align-items: center; gap: 6px; min-height: 32px; }
.legend button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
.pick { display: flex; gap: 4px; flex-wrap: wrap; }
.pick button[aria-pressed=true] { background: var(--accent); border-color: var(--accent); color: var(--panel); }
.plot svg { display: block; width: 100%; touch-action: pan-y; }
.plot text { fill: var(--soft); font-size: 12px; paint-order: stroke; stroke: var(--panel); stroke-width: 3px; stroke-linejoin: round; }
.plot .strong { fill: var(--ink); }
.grid { stroke: var(--grid); } .axis { stroke: var(--line); }
.aim { stroke: var(--soft); stroke-dasharray: 5 4; }
.whisker { stroke: var(--ink); stroke-width: 1.5; opacity: .75; fill: none; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 6px 10px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
tr:last-child td { border-bottom: 0; }
th.left, td.left { text-align: left; }
td.best { font-weight: 700; }
td.wrap { white-space: normal; overflow-wrap: anywhere; min-width: 16em; }
td small { color: var(--soft); font-size: inherit; font-weight: 400; }
details summary { cursor: pointer; font-weight: 650; }
details[open] summary { margin-bottom: 8px; }
dl { margin: 0; display: grid; grid-template-columns: repeat(auto-fill, minmax(230px, 1fr)); gap: 2px 18px; font-size: 13px; }
dl div { display: flex; gap: 8px; justify-content: space-between; border-bottom: 1px solid var(--grid); padding: 2px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; text-align: right; }
#tip { position: fixed; z-index: 3; pointer-events: none; background: var(--panel); color: var(--ink); border: 1px solid var(--line); border-radius: 8px; box-shadow: 0 4px 18px rgb(0 0 0 / .18);
  padding: 7px 10px; font-size: 13px; max-width: min(340px, 90vw); font-variant-numeric: tabular-nums; }
#tip b { font-weight: 650; } #tip div { display: flex; gap: 12px; justify-content: space-between; } #tip .soft { color: var(--soft); }
#tip svg { vertical-align: -2px; margin-right: 5px; }
@media print { .legend { position: static; } .panel { break-inside: avoid; } }
)css";

}  // namespace trireme::train
