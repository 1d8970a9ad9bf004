// A pipeline schedule: the page around its chart.
// ---- activations held ----
const peak = Math.max(...D.most_held, ...D.bounds), row = Math.max(26, Math.min(44, 260 / S));
const tall = head + S * (row + gap) + 20;
const memory = svg('svg', {
  width,
  height: tall,
  viewBox: `0 0 ${width} ${tall}`,
  role: 'img',
  'aria-label': 'Activations that each stage holds, over time'
});
axis(memory, tall);
D.held.forEach((steps, stage) => {
  const base = head + stage * (row + gap) + row, h = n => base - n / peak * (row - 4);
  nameRow(memory, stage, base - row / 2 + 5);
  let d = `M${x(0)} ${base}`;
  steps.forEach(([t, n], i) => {
    if (i + 1 === steps.length || steps[i + 1][0] !== t) d += `H${x(t)}V${h(n)}`;
  });
  d += `H${x(D.makespan)}`;
  memory.append(
      svg('path', {class: 'held', d: `${d}V${base}Z`}), svg('path', {class: 'held-line', d}),
      svg('line', {class: 'bound', x1: x(0), x2: x(D.makespan), y1: h(D.bounds[stage]), y2: h(D.bounds[stage])},
          svg('title', {}, `at most ${D.bounds[stage]}`)));
});

// ---- words and tables ----
const cellsOf = (tag, ...texts) => el('tr', {}, ...texts.map(t => el(tag, {}, t instanceof Node ? t : String(t))));
const perStage =
    el('table', {}, el('thead', {}, cellsOf('th', 'stage', 'busy', 'idle', 'bubble', 'most held', 'bound')),
       el('tbody', {},
          ...D.idle.map(
              (idle, s) => cellsOf(
                  'td', `stage ${s}`, round(D.busy[s]), round(Math.max(0, idle)),
                  percent(Math.max(0, idle) / D.makespan), D.most_held[s], D.bounds[s]))));
const worst = Math.max(...D.kinds.map(k => k.bubble), 1e-9);
const kinds =
    el('table', {}, el('thead', {}, cellsOf('th', 'schedule', '', 'bubble', 'time', 'held', 'messages', 'formula')),
       el('tbody', {}, ...D.kinds.map(k => {
         const bar = el('i', {style: `width:${100 * k.bubble / worst}%`});
         const line = cellsOf(
             'td', k.name + (k.synchronous ? '' : ' *'), el('div', {}, bar), percent(k.bubble), round(k.time),
             round(k.held), k.messages, k.formula);
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
legend.append(
    D.chunks > 1 ? 'paler: later chunks; 0a is micro-batch 0 in the first' : 'numbers are micro-batches',
    el('span', {}, 'point at one to follow it, click to keep it'));
const tile = (value, text) => el('div', {class: 'panel tile'}, el('b', {}, value), el('small', {}, text));
const mine = D.kinds.find(k => k.name === D.name);
document.body.append(
    el('main', {}, pageHeader(D.title, D.summary),
       el('section', {class: 'tiles'},
          tile(
              percent(D.bubble),
              mine.formula_value === null ? 'bubble; no formula for this size' :
                                            `bubble; ${mine.formula} = ${percent(mine.formula_value)}`),
          tile(String(round(D.makespan)), 'time for all micro-batches'),
          tile(String(round(D.latency)), 'until micro-batch 0 is through and back'),
          tile(
              String(Math.max(...D.most_held)),
              D.chunks > 1 ? 'activations of a chunk held at most by a stage' :
                             'micro-batches held at most by a stage')),
       el('section', {class: 'panel'}, el('h2', {}, 'Who does what when'), el('div', {class: 'scroll'}, chart), legend),
       el('section', {class: 'panel'}, el('h2', {}, 'Activations held, and the bound'),
          el('div', {class: 'scroll'}, memory)),
       el('section', {class: 'columns'},
          el('div', {class: 'panel'}, el('h2', {}, 'By stage'), el('div', {class: 'scroll'}, perStage), facts),
          el('div', {class: 'panel'}, el('h2', {}, 'The same with other schedules'),
             el('div', {class: 'scroll'}, kinds),
             el('p', {class: 'summary', style: 'font-size:13px;margin-top:10px'},
                'held: whole micro-batches at most by one stage. ' +
                    '* asynchronous: its bubble is that of start and end of the whole stream.')))),
    tip);
const scrolls = [chart.parentNode, memory.parentNode];
for (const one of scrolls)
  one.onscroll = () => scrolls.forEach(other => {
    other.scrollLeft = one.scrollLeft;
  });
if (hash.get('micro-batch')) {
  pinned = true;
  pick(+hash.get('micro-batch'));
}
