#include "trireme/mesh/draw/page.h"

namespace trireme::pipelines {

const char kPageScript[] = R"js(
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const S = D.stages, hash = new URLSearchParams(location.hash.slice(1));
if (hash.get('theme')) document.documentElement.dataset.theme = hash.get('theme');

// ---- small tools ----
const round = x => +x.toFixed(Math.abs(x) < 10 ? 2 : 1);
const percent = x => `${(100 * x).toFixed(1)} %`;
const words = {f: 'forward', b: D.splits ? 'backward, gradient of inputs' : 'backward', w: 'gradient of weights', u: 'update'};

// ---- the chart ----
const left = 66, head = 8, right = 14, lane = S > 16 ? 24 : 34, gap = 6;
const shortest = Math.min(...D.cells.flat().filter(c => c[4] > c[3]).map(c => c[4] - c[3]));
const digits = String(D.micro_batches - 1).length + (D.chunks > 1 ? 1 : 0);
const room = Math.max(320, Math.min(1280, document.documentElement.clientWidth) - 48 - 34 - left - right);  // inside the panel
const font = digits > 1 ? 10.5 : 12, fitting = n => 3.5 + .6 * font * n;  // width of a label of n characters
const scale = Math.max(room / D.makespan, fitting(digits) / shortest);
const width = left + D.makespan * scale + right, x = t => left + t * scale;
const step = (() => { let s = 1; for (let i = 0; s * scale < 44; ++i) s *= i % 2 ? 2 : 5; return s; })();
let picked = null, pinned = false;

function axis(picture, height) {
  for (let t = 0; t <= D.makespan + 1e-9; t += step) {
    const text = svg('text', {class: 'axis', x: x(t), y: height - 4, 'text-anchor': 'middle'});
    text.textContent = round(t);
    picture.append(svg('line', {class: 'grid', x1: x(t), x2: x(t), y1: head, y2: height - 18}), text);
  }
}
function nameRow(picture, stage, y) {
  const text = svg('text', {class: 'stage', x: 0, y});
  text.textContent = `stage ${stage}`;
  picture.append(text);
}
function shade(kind, chunk) {  // chunks of one stage: from full colour to paler
  if (D.chunks < 2) return '';
  const share = 100 - 52 * chunk / (D.chunks - 1);
  return `fill: color-mix(in oklab, var(--${kind}) ${share}%, var(--panel))`;
}
const height = head + S * (lane + gap) + 20;
const y = stage => head + stage * (lane + gap);
const chart = svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${D.title}: time runs to the right, one row for each stage`});
chart.append(svg('defs', {}, svg('pattern', {id: 'idle', width: 8, height: 8, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'},
  svg('rect', {width: 8, height: 8, fill: 'var(--empty)'}), svg('rect', {width: 3, height: 8, fill: 'var(--stripe)'}))));
axis(chart, height);
const paths = svg('g');
const byBatch = Array.from({length: D.micro_batches}, () => []);
D.cells.forEach((row, stage) => {
  nameRow(chart, stage, y(stage) + lane / 2 + 5);
  chart.append(svg('rect', {class: 'lane', x: left, y: y(stage), width: D.makespan * scale, height: lane, rx: 4}));
  for (const [kind, m, chunk, begin, end] of row) {
    if (kind === 'u') continue;
    const w = (end - begin) * scale;
    const box = svg('rect', {x: x(begin), y: y(stage), width: Math.max(w, 1), height: lane, style: shade(kind, chunk)});
    const cell = svg('g', {class: `cell ${kind}`}, box);
    const label = D.chunks > 1 ? `${m}${String.fromCharCode(97 + chunk % 26)}` : `${m}`;
    if (w > fitting(label.length) - .01) {
      const text = svg('text', {x: x(begin) + w / 2, y: y(stage) + lane / 2 + 1, 'font-size': font});
      if (D.chunks > 1 && chunk > (D.chunks - 1) / 2) text.style.fill = 'var(--ink)';
      text.textContent = label;
      cell.append(text);
    }
    cell.onmousemove = event => tip(event, stage, kind, m, chunk, begin, end);
    cell.onmouseleave = () => { tipBox.style.display = 'none'; if (!pinned) pick(null); };
    cell.onclick = event => { event.stopPropagation(); pinned = !(pinned && picked === m); pick(m); };
    byBatch[m].push({cell, kind, stage, chunk, begin, end});
    chart.append(cell);
  }
  for (const [kind, m, chunk, begin] of row) {
    if (kind === 'u') chart.append(svg('line', {class: 'update', x1: x(begin), x2: x(begin), y1: y(stage) - 2, y2: y(stage) + lane + 2}));
  }
});
chart.append(paths);

// ---- one micro-batch followed through all stages ----
function pick(m) {
  if (m === picked) return;
  picked = m;
  document.querySelectorAll('.cell.on').forEach(node => node.classList.remove('on'));
  chart.classList.toggle('picked', m !== null);
  paths.replaceChildren();
  if (m === null) return;
  for (const c of byBatch[m]) c.cell.classList.add('on');
  const part = c => c.chunk * S + c.stage;
  const ways = [byBatch[m].filter(c => c.kind === 'f').sort((a, b) => part(a) - part(b)),
    byBatch[m].filter(c => c.kind === 'b').sort((a, b) => part(b) - part(a))];
  for (const way of ways) way.slice(1).forEach((c, i) => {
    const from = way[i], down = c.stage > from.stage;
    if (c.stage === from.stage) return;
    paths.append(svg('path', {class: 'path', d: `M${x(from.end)} ${y(from.stage) + (down ? lane : 0)} L${x(c.begin)} ${y(c.stage) + (down ? 0 : lane)}`}));
  });
}
document.addEventListener('click', () => { pinned = false; pick(null); });
const tipBox = el('div', {id: 'tip'});
function tip(event, stage, kind, m, chunk, begin, end) {
  if (!pinned) pick(m);
  const where = D.chunks > 1 ? `stage ${stage}, chunk ${chunk}: part ${chunk * S + stage} of ${S * D.chunks}` : `stage ${stage}`;
  tipBox.replaceChildren(el('b', {}, `micro-batch ${m}: ${words[kind]}`), where, el('br'), `from ${round(begin)} to ${round(end)}`);
  tipBox.style.display = 'block';
  tipBox.style.left = `${Math.min(event.clientX + 14, innerWidth - tipBox.offsetWidth - 8)}px`;
  tipBox.style.top = `${event.clientY + 18 + tipBox.offsetHeight > innerHeight ? event.clientY - tipBox.offsetHeight - 10 : event.clientY + 18}px`;
}

// ---- activations held ----
const peak = Math.max(...D.most_held, ...D.bounds), row = Math.max(26, Math.min(44, 260 / S));
const tall = head + S * (row + gap) + 20;
const memory = svg('svg', {width, height: tall, viewBox: `0 0 ${width} ${tall}`, role: 'img', 'aria-label': 'Activations that each stage holds, over time'});
axis(memory, tall);
D.held.forEach((steps, stage) => {
  const base = head + stage * (row + gap) + row, h = n => base - n / peak * (row - 4);
  nameRow(memory, stage, base - row / 2 + 5);
  let d = `M${x(0)} ${base}`;
  steps.forEach(([t, n], i) => { if (i + 1 === steps.length || steps[i + 1][0] !== t) d += `H${x(t)}V${h(n)}`; });
  d += `H${x(D.makespan)}`;
  memory.append(svg('path', {class: 'held', d: `${d}V${base}Z`}), svg('path', {class: 'held-line', d}),
    svg('line', {class: 'bound', x1: x(0), x2: x(D.makespan), y1: h(D.bounds[stage]), y2: h(D.bounds[stage])},
      svg('title', {}, `at most ${D.bounds[stage]}`)));
});

// ---- words and tables ----
const cellsOf = (tag, ...texts) => el('tr', {}, ...texts.map(t => el(tag, {}, t instanceof Node ? t : String(t))));
const perStage = el('table', {}, el('thead', {}, cellsOf('th', 'stage', 'busy', 'idle', 'bubble', 'most held', 'bound')),
  el('tbody', {}, ...D.idle.map((idle, s) => cellsOf('td', `stage ${s}`, round(D.busy[s]), round(Math.max(0, idle)), percent(Math.max(0, idle) / D.makespan), D.most_held[s], D.bounds[s]))));
const worst = Math.max(...D.kinds.map(k => k.bubble), 1e-9);
const kinds = el('table', {}, el('thead', {}, cellsOf('th', 'schedule', '', 'bubble', 'time', 'held', 'messages', 'formula')),
  el('tbody', {}, ...D.kinds.map(k => {
    const bar = el('i', {style: `width:${100 * k.bubble / worst}%`});
    const line = cellsOf('td', k.name + (k.synchronous ? '' : ' *'), el('div', {}, bar), percent(k.bubble), round(k.time), round(k.held), k.messages, k.formula);
    line.children[1].className = 'bar';
    line.title = k.summary;
    if (k.name === D.name) line.className = 'on';
    return line;
  })));
const facts = el('dl', {}, ...D.facts.flatMap(([label, text]) => [el('dt', {}, label), el('dd', {}, text)]));
const legend = el('div', {class: 'legend'});
const chip = (style, text, cls = '') => legend.append(el('span', {}, el('i', {style, class: cls}), text));
chip('background:var(--f)', 'forward');
chip('background:var(--b)', D.splits ? 'backward, of inputs' : 'backward');
if (D.splits) chip('background:var(--w)', 'gradient of weights');
if (!D.synchronous) chip('background:var(--u);width:4px', 'update');
chip('', 'idle: the bubble', 'swatch-idle');
legend.append(D.chunks > 1 ? 'paler: later chunks; 0a is micro-batch 0 in the first' : 'numbers are micro-batches', el('span', {}, '· point at one to follow it, click to keep it'));
const tile = (value, text) => el('div', {class: 'panel tile'}, el('b', {}, value), el('small', {}, text));
const mine = D.kinds.find(k => k.name === D.name);
document.body.append(el('main', {},
  el('header', {}, el('h1', {}, D.title), el('p', {class: 'summary'}, D.summary)),
  el('section', {class: 'tiles'},
    tile(percent(D.bubble), mine.formula_value === null ? 'bubble; no formula for this size' : `bubble; ${mine.formula} = ${percent(mine.formula_value)}`),
    tile(String(round(D.makespan)), 'time for all micro-batches'),
    tile(String(round(D.latency)), 'until micro-batch 0 is through and back'),
    tile(String(Math.max(...D.most_held)), D.chunks > 1 ? 'activations of a chunk held at most by a stage' : 'micro-batches held at most by a stage')),
  el('section', {class: 'panel'}, el('h2', {}, 'Who does what when'), el('div', {class: 'scroll'}, chart), legend),
  el('section', {class: 'panel'}, el('h2', {}, 'Activations held, and the bound'), el('div', {class: 'scroll'}, memory)),
  el('section', {class: 'columns'},
    el('div', {class: 'panel'}, el('h2', {}, 'By stage'), perStage, facts),
    el('div', {class: 'panel'}, el('h2', {}, 'The same with other schedules'), kinds,
      el('p', {class: 'summary', style: 'font-size:13px;margin-top:10px'}, 'held: whole micro-batches at most by one stage. * asynchronous: its bubble is that of start and end of the whole stream.')))), tipBox);
const scrolls = [...document.querySelectorAll('.scroll')];
for (const one of scrolls) one.onscroll = () => scrolls.forEach(other => { other.scrollLeft = one.scrollLeft; });
if (hash.get('micro-batch')) { pinned = true; pick(+hash.get('micro-batch')); }
)js";

}  // namespace trireme::pipelines
