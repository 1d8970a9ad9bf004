// A pipeline schedule as a chart, and what its stages hold. Data: what mesh/draw/page.cpp writes.
const S = D.stages;

// ---- small tools ----
const round = x => +x.toFixed(Math.abs(x) < 10 ? 2 : 1);
const percent = x => `${(100 * x).toFixed(1)} %`;
const words = {
  f: 'forward',
  b: D.splits ? 'backward, gradient of inputs' : 'backward',
  w: 'gradient of weights',
  u: 'update'
};

// ---- the chart ----
const left = 66, head = 8, right = 14, lane = S > 16 ? 24 : 34, gap = 6;
const shortest = Math.min(...D.cells.flat().filter(c => c[4] > c[3]).map(c => c[4] - c[3]));
const digits = String(D.micro_batches - 1).length + (D.chunks > 1 ? 1 : 0);
const room =
    Math.max(320, Math.min(1280, document.documentElement.clientWidth) - 48 - 34 - left - right);  // inside the panel
const font = digits > 1 ? 10.5 : 12, fitting = n => 3.5 + .6 * font * n;  // width of a label of n characters
const scale = Math.max(room / D.makespan, fitting(digits) / shortest);
const width = left + D.makespan * scale + right, x = t => left + t * scale;
const step = (() => {
  let s = 1;
  for (let i = 0; s * scale < 44; ++i) s *= i % 2 ? 2 : 5;
  return s;
})();
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
const chart = svg('svg', {
  width,
  height,
  viewBox: `0 0 ${width} ${height}`,
  role: 'img',
  'aria-label': `${D.title}: time runs to the right, one row for each stage`
});
chart.append(svg(
    'defs', {},
    svg('pattern', {id: 'idle', width: 8, height: 8, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'},
        svg('rect', {width: 8, height: 8, fill: 'var(--empty)'}),
        svg('rect', {width: 3, height: 8, fill: 'var(--stripe)'}))));
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
    cell.onmousemove = event => tell(event, stage, kind, m, chunk, begin, end);
    cell.onmouseleave = () => {
      hideTip();
      if (!pinned) pick(null);
    };
    cell.onclick = event => {
      event.stopPropagation();
      pinned = !(pinned && picked === m);
      pick(m);
    };
    byBatch[m].push({cell, kind, stage, chunk, begin, end});
    chart.append(cell);
  }
  for (const [kind, m, chunk, begin] of row) {
    if (kind === 'u')
      chart.append(
          svg('line', {class: 'update', x1: x(begin), x2: x(begin), y1: y(stage) - 2, y2: y(stage) + lane + 2}));
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
  const ways = [
    byBatch[m].filter(c => c.kind === 'f').sort((a, b) => part(a) - part(b)),
    byBatch[m].filter(c => c.kind === 'b').sort((a, b) => part(b) - part(a))
  ];
  for (const way of ways)
    way.slice(1).forEach((c, i) => {
      const from = way[i], down = c.stage > from.stage;
      if (c.stage === from.stage) return;
      paths.append(svg('path', {
        class: 'path',
        d: `M${x(from.end)} ${y(from.stage) + (down ? lane : 0)} L${x(c.begin)} ${y(c.stage) + (down ? 0 : lane)}`
      }));
    });
}
document.addEventListener('click', () => {
  pinned = false;
  pick(null);
});
function tell(event, stage, kind, m, chunk, begin, end) {
  if (!pinned) pick(m);
  const part = D.chunks > 1 ? `, chunk ${chunk}: part ${chunk * S + stage} of ${S * D.chunks}` : '';
  showTip(
      event, el('b', {}, `micro-batch ${m}: ${words[kind]}`), el('br'), `stage ${stage}${part}`, el('br'),
      `from ${round(begin)} to ${round(end)}`);
}
