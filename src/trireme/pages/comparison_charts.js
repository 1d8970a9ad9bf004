// Runs compared: axes, lines, bars.
const known = x => typeof x === 'number' && isFinite(x);
const colour = v => `var(--c${v % 8})`;
const dashes = v => ['', '7 4', '2 3', '9 3 2 3'][Math.floor(v / 8) % 4];
const SHAPES = [
  r => `M${- r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${- 2 * r} 0z`,
  r => `M${- r * .9} ${- r * .9}h${1.8 * r}v${1.8 * r}h${- 1.8 * r}z`,
  r => `M0 ${- 1.2 * r}L${1.15 * r} ${.85 * r}H${- 1.15 * r}z`,
  r => `M0 ${- 1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${- 1.3 * r} 0z`,
  r => `M0 ${1.2 * r}L${1.15 * r} ${- .85 * r}H${- 1.15 * r}z`
];
const marker = (v, x, y, r = 4) =>
    svg('path', {d: SHAPES[v % 5](r), transform: `translate(${x} ${y})`, fill: colour(v)});
const swatch = v =>
    svg('svg', {width: 26, height: 12, viewBox: '0 0 26 12', 'aria-hidden': true},
        svg('line', {x1: 1, x2: 25, y1: 6, y2: 6, stroke: colour(v), 'stroke-width': 2, 'stroke-dasharray': dashes(v)}),
        marker(v, 13, 6, 4));
const label = (text, x, y, anchor = 'middle', more = {}) => svg('text', {x, y, 'text-anchor': anchor, ...more}, text);

const per_cent = x => known(x) ? (100 * x).toFixed(2) + '%' : '–';
const seconds = x => !known(x) ? '–' :
    x < 59.95                  ? x.toFixed(x < 1 ? 2 : 1) + ' s' :
                                 `${Math.floor(Math.round(x) / 60)}:${String(Math.round(x) % 60).padStart(2, '0')} min`;
const grouped = x => known(x) ? Math.round(x).toLocaleString('en') : '–';
const ms = x => known(x) ? (x < 1 ? x.toFixed(3) : x < 100 ? x.toFixed(2) : x.toFixed(0)) + ' ms' : '–';
// Where the whisker or band ends: lowest and highest of two, mean ± standard deviation from three on.
const lower = s => s.count >= 3 ? s.mean - s.deviation : s.low,
      upper = s => s.count >= 3 ? s.mean + s.deviation : s.high;
function spreadWords(s, format) {
  if (!s.count || s.count < 2 || s.low === s.high) return '';
  return s.count === 2 ? `(${format(s.low)} to ${format(s.high)})` : `± ${format(s.deviation)}`;
}
function spreadOf(values) {
  const list = values.filter(known), count = list.length;
  if (!count) return {count};
  const mean = list.reduce((a, b) => a + b) / count;
  const deviation = count > 1 ? Math.sqrt(list.reduce((a, b) => a + (b - mean) ** 2, 0) / (count - 1)) : null;
  return {count, mean, low: Math.min(...list), high: Math.max(...list), deviation};
}
function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(wanted, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find(f => f * power >= raw * .999) * power;
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
    list.push(+(k * step).toPrecision(12));
  return list;
}
const short = x => Math.abs(x) >= 1e6 ? +(x / 1e6).toFixed(2) + ' M' :
    Math.abs(x) >= 1e4                ? +(x / 1e3).toFixed(1) + ' k' :
                                        String(+x.toPrecision(6));

// ---- rows of the tip under the pointer ----
const tipRow = (name, value) => el('div', {}, el('span', {}, ...[name].flat()), el('b', {}, value));

// ---- a frame with axes; x and y are [low, high], y in per cent or up to `most`, ticks are values or [value, text]
// ----
function frame(width, height, o) {
  const yTicks = ticks(o.y[0], o.y[1], Math.floor(height / 52)).filter(t => t >= 0 && t <= (o.most ?? 100));
  const left = 14 + 7.2 * Math.max(...yTicks.map(t => short(t).length)), bottom = o.stagger ? 54 : 40, top = 12,
        right = 14 + (o.roomRight || 0);
  const node = svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': o.title});
  const map = o.log ? x => Math.log2(x) : x => x;
  const [x0, x1] = o.x.map(map);
  const X = x => left + 8 + (width - left - right - 16) * (x1 > x0 ? (map(x) - x0) / (x1 - x0) : .5);
  const Y = y => height - bottom - (height - top - bottom) * (o.y[1] > o.y[0] ? (y - o.y[0]) / (o.y[1] - o.y[0]) : .5);
  for (const t of yTicks)
    node.append(
        svg('line', {class: 'grid', x1: left, x2: width - right, y1: Y(t), y2: Y(t)}),
        label(short(t), left - 6, Y(t) + 4, 'end'));
  node.append(svg('line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
  const free = o.stagger ? [-Infinity, -Infinity] : [-Infinity];  // rows of names below the axis
  for (const t of o.xTicks ||
       ticks(o.x[0], o.x[1], Math.floor(width / 80)).filter(t => !o.whole || Number.isInteger(t))) {
    const [at, text] = Array.isArray(t) ? t : [t, short(t)], half = 3.4 * text.length + 3;
    const row = free.findIndex(end => X(at) - half >= end);
    if (row < 0) continue;
    free[row] = X(at) + half;
    node.append(
        svg('line', {class: 'axis', x1: X(at), x2: X(at), y1: height - bottom, y2: height - bottom + 4}),
        label(text, X(at), height - bottom + 17 + 14 * row));
  }
  node.append(label(o.xLabel, (left + width - right) / 2, height - 5));
  return {node, X, Y, left, right: width - right, top, bottom: height - bottom};
}
// With some room beside the values, but little beyond what is possible.
function range(values, share = .06, least = -Infinity, most = Infinity) {
  const low = Math.min(...values), high = Math.max(...values), room = (high - low || Math.abs(high) || 1) * share;
  return [
    Math.max(low - room, Math.min(low, least) - .2 * room), Math.min(high + room, Math.max(high, most) + .2 * room)
  ];
}

// series: [{v, points: [{x, s, tip}]}], s a spread from `least` (0) to `most` (100); rules: [{y, text}]
function lineChart(width, o) {
  const height = Math.max(240, Math.min(340, width * .58));
  const low = s => Math.max(o.least ?? 0, lower(s)),
        high = s => Math.min(o.most ?? 100, upper(s));  // a standard deviation knows no bounds
  const all = o.series.flatMap(s => s.points);
  if (!all.length) return el('p', {class: 'note'}, 'Nothing to draw yet.');
  const ys = all.flatMap(p => [low(p.s), high(p.s)]).concat((o.rules || []).map(r => r.y));
  const ends =
      o.series.filter(s => s.end && s.points.length).map(s => ({text: s.end, point: s.points[s.points.length - 1]}));
  const roomRight = ends.length ? Math.min(width / 3, 10 + 6.6 * Math.max(...ends.map(e => e.text.length))) : 0;
  const f = frame(
      width, height,
      {...o, roomRight, x: o.x || range(all.map(p => p.x), 0), y: range(ys, .06, o.least ?? 0, o.most ?? 100)});
  for (const r of o.rules || []) {
    f.node.append(
        svg('line', {class: 'aim', x1: f.left, x2: f.right, y1: f.Y(r.y), y2: f.Y(r.y)}),
        label(r.text, f.left + 4, f.Y(r.y) - 5, 'start'));
  }
  const bands = svg('g'), lines = svg('g'), marks = svg('g');
  for (const {v, points, line, whiskers} of o.series) {
    const paint = line || colour(v);
    if (!whiskers && points.some(p => p.s.count > 1) && points.length > 1) {
      const there = points.map(p => `${f.X(p.x)} ${f.Y(high(p.s))}`),
            back = points.map(p => `${f.X(p.x)} ${f.Y(low(p.s))}`).reverse();
      bands.append(svg('path', {d: `M${there.concat(back).join('L')}z`, fill: paint, opacity: .16}));
    }
    lines.append(svg('path', {
      d: 'M' + points.map(p => `${f.X(p.x)} ${f.Y(p.s.mean)}`).join('L'),
      fill: 'none',
      stroke: paint,
      'stroke-width': 2,
      'stroke-dasharray': dashes(v),
      'stroke-linejoin': 'round'
    }));
    for (const p of points) {
      const x = f.X(p.x), a = f.Y(high(p.s)), b = f.Y(low(p.s));
      if (whiskers && p.s.count > 1)
        marks.append(svg('path', {class: 'whisker', d: `M${x - 5} ${a}h10M${x} ${a}V${b}M${x - 5} ${b}h10`}));
      marks.append(marker(p.v ?? v, x, f.Y(p.s.mean), points.length > 40 ? 2 : whiskers ? 5.5 : 4));
    }
  }
  let free = -Infinity;  // names at the ends of lines, kept apart
  for (const e of ends.sort((a, b) => b.point.s.mean - a.point.s.mean)) {
    free = Math.max(free + 14, f.Y(e.point.s.mean) + 4);
    marks.append(label(e.text, f.right + 2, free, 'start'));
  }
  const ring = svg('circle', {r: 8, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.5, visibility: 'hidden'});
  f.node.append(bands, lines, marks, ring);
  const hover = event => {
    const box = f.node.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let near = null, least = Infinity;
    for (const s of o.series)
      for (const p of s.points) {
        const d = Math.hypot(f.X(p.x) - px, f.Y(p.s.mean) - py);
        if (d < least) {
          least = d;
          near = p;
        }
      }
    ring.setAttribute('cx', f.X(near.x));
    ring.setAttribute('cy', f.Y(near.s.mean));
    ring.setAttribute('visibility', 'visible');
    showTip(event, ...near.tip());
  };
  f.node.addEventListener('pointermove', hover);
  f.node.addEventListener('pointerdown', hover);
  f.node.addEventListener('pointerleave', () => {
    ring.setAttribute('visibility', 'hidden');
    hideTip();
  });
  return f.node;
}

// rows: [{name, v, parts: [{size, fill, tip}], s (for a whisker) or nothing, text}]
function barChart(width, o) {
  if (!o.rows.length) return el('p', {class: 'note'}, 'Nothing to draw yet.');
  const row = Math.max(44, Math.min(78, Math.floor(250 / o.rows.length))), thick = Math.round(row * .4), bottom = 38;
  const height = o.rows.length * row + bottom + 4, right = 14;
  const most = Math.max(
      ...o.rows.map(r => Math.max(r.s && r.s.count ? upper(r.s) : 0, r.parts.reduce((a, p) => a + (p.size || 0), 0))),
      1e-12);
  const room = Math.min(150, 16 + 7 * Math.max(...o.rows.map(r => r.text.length)));
  const X = x => 4 + (width - 4 - right - room) * x / most;
  const node = svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': o.title});
  for (const t of ticks(0, most, Math.floor(width / 110))) {
    node.append(
        svg('line', {class: 'grid', x1: X(t), x2: X(t), y1: 4, y2: height - bottom}),
        label(short(t), X(t), height - bottom + 16, t ? 'middle' : 'start'));
  }
  node.append(
      svg('line', {class: 'axis', x1: X(0), x2: X(0), y1: 4, y2: height - bottom}),
      label(o.xLabel, X(most / 2), height - 4));
  o.rows.forEach((r, i) => {
    const top = 4 + i * row, middle = top + 20 + thick / 2;
    node.append(label(r.name, 10, top + 14, 'start', {class: 'strong'}));
    let at = 0;
    for (const p of r.parts) {
      if (!(p.size > 0)) continue;
      const bar = svg('rect', {
        x: X(at),
        y: top + 20,
        width: Math.max(1, X(at + p.size) - X(at)),
        height: thick,
        fill: p.fill,
        rx: r.parts.length > 1 ? 0 : 3
      });
      for (const kind of ['pointermove', 'pointerdown'])
        bar.addEventListener(kind, event => showTip(event, ...p.tip()));
      bar.addEventListener('pointerleave', hideTip);
      node.append(bar);
      at += p.size;
    }
    let end = at;
    if (r.s && r.s.count > 1 && upper(r.s) - lower(r.s) > 1e-6 * most) {
      const a = X(lower(r.s)), b = X(upper(r.s));
      node.append(svg('path', {
        class: 'whisker',
        'pointer-events': 'none',
        d: `M${a} ${middle - 5}v10M${a} ${middle}H${b}M${b} ${middle - 5}v10`
      }));
      end = Math.max(end, upper(r.s));
    }
    node.append(label(r.text, X(end) + 8, middle + 4, 'start', {class: 'strong'}));
  });
  return node;
}
