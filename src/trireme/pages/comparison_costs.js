// Runs compared: what synchronization costs, and what theory says.
// ---- what synchronization costs: bytes, waiting, staleness, consensus ----
const BYTES = [['GB', 1e9], ['MB', 1e6], ['KB', 1e3], ['B', 1]];
const byteUnit = x => BYTES.find(([, scale]) => x >= scale) || BYTES[3];
function bytes(x) {
  if (!known(x)) return '–';
  const [name, scale] = byteUnit(x), n = x / scale;
  return (scale === 1 ? String(Math.round(n)) : n.toFixed(n < 10 ? 2 : n < 100 ? 1 : 0)) + ' ' + name;
}
const digits4 = x => known(x) ? String(+x.toPrecision(4)) : '–';
const digits3 = x => known(x) ? (Math.abs(x) >= 1000 ? grouped(x) : String(+x.toPrecision(3))) : '–';
const some = key => V.some(v => v[key] && v[key].count && v[key].high > 0);

// 1, 2, 5, 10, … or powers of ten alone where those are many.
function logTicks(low, high) {
  const list = [];
  const steps = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); ++p) {
    for (const f of steps)
      if (f * 10 ** p >= low * .999 && f * 10 ** p <= high * 1.001) list.push(+(f * 10 ** p).toPrecision(3));
  }
  return list;
}
// Logarithmic where some variants send many times what others do.
function metricByBytes(width) {
  const series =
      shown().map(v => ({v, points: curve(v, 'bytes_sent').filter(p => p.x > 0)})).filter(s => s.points.length);
  const all = series.flatMap(s => s.points), last = series.map(s => s.points[s.points.length - 1].x);
  if (!all.length) return el('p', {class: 'note'}, 'Nothing was sent.');
  const log = Math.max(...last) >= 6 * Math.min(...last), [name, scale] = byteUnit(Math.max(...last));
  for (const p of all) {
    const sent = p.x;
    p.x /= scale;
    p.tip = () =>
        [el('div', {}, el('b', {}, ...named(p.v))), tipRow('sent', bytes(sent)), tipRow('epoch', String(p.epoch)),
         tipRow(`test ${M.title}`, `${plain(p.s.mean)} ${spreadWords(p.s, plain)}`)];
  }
  const xs = all.map(p => p.x), x = log ? [Math.min(...xs), Math.max(...xs)] : [0, Math.max(...xs)];
  return lineChart(width, {
    title: `Test ${M.title} by bytes sent`,
    ...bounds,
    series,
    rules: aims(),
    log,
    x,
    ...(log ? {xTicks: logTicks(...x).map(t => [t, String(t)])} : {}),
    xLabel: `${name} sent by a worker` + (log ? ' (logarithmic)' : '')
  });
}
function consensusBy(width) {
  const series = shown().map(v => ({v, points: curve(v, 'step', 'consensus', 1)})).filter(s => s.points.length);
  for (const s of series)
    for (const p of s.points)
      p.tip = () =>
          [el('div', {}, el('b', {}, ...named(p.v))), tipRow('step', grouped(p.x)),
           tipRow('distance', `${digits3(p.s.mean)} ${spreadWords(p.s, digits3)}`)];
  return lineChart(width, {
    title: 'Distance to consensus',
    series,
    most: Infinity,
    x: [0, Math.max(0, ...series.flatMap(s => s.points.map(p => p.x)))],
    xLabel: 'steps'
  });
}
function waiting(width) {
  return barChart(width, {
    title: 'Computing and waiting',
    xLabel: 'seconds of a worker',
    rows: shown().filter(v => V[v].wait_s.count).map(v => {
      const both = [['computing', V[v].compute_s.mean, 'var(--p0)'], ['waiting', V[v].wait_s.mean, 'var(--p2)']],
            whole = both[0][1] + both[1][1];
      const tips = () =>
          [el('b', {}, V[v].label),
           ...both.map(([word, x]) => tipRow(word, `${seconds(x)}  ${(100 * x / (whole || 1)).toFixed(1)}%`))];
      return {
        name: V[v].label,
        v,
        text: `${(100 * both[1][1] / (whole || 1)).toFixed(0)}% waiting`,
        parts: both.map(([, size, fill]) => ({size, fill, tip: tips}))
      };
    })
  });
}
function stale(width) {
  return barChart(width, {
    title: 'Staleness',
    xLabel: 'steps',
    rows: shown().filter(v => V[v].staleness_mean.count).map(v => {
      const s = V[v].staleness_mean, most = V[v].staleness_max;
      const tips = () =>
          [el('div', {}, el('b', {}, ...named(v))), tipRow('mean', digits3(s.mean)), tipRow('most', digits3(most.high)),
           tipRow('seeds', String(s.count))];
      return {
        name: V[v].label,
        v,
        s,
        text: `${digits3(s.mean)}, at most ${digits3(most.high)}`,
        parts: [{size: s.mean, fill: colour(v), tip: tips}]
      };
    })
  });
}
function costPanels() {
  const keys =
      el('div', {class: 'keys'},
         ...['computing', 'waiting'].map(
             (word, i) => el('span', {}, el('i', {style: `background:var(--p${2 * i})`}), word)));
  const [unit, scale] = byteUnit(Math.max(...V.map(v => v.bytes_sent.mean || 0)));
  return [
    some('bytes_sent') &&
        panel(
            `Test ${M.title} by bytes sent`,
            (M.share ? '%; ' : '') + 'bytes that a worker sent to train, without those of testing', metricByBytes),
    some('bytes_sent') &&
        panel(
            'Bytes sent by a worker', 'In all, mean over the workers; shorter is better',
            barsOf('bytes_sent', bytes, unit, 'Bytes sent', scale)),
    some('wait_s') &&
        panel(
            'Computing and waiting', 'Mean over workers and seeds; waiting is for others and for bytes on their way',
            waiting, keys),
    some('staleness_max') &&
        panel('Staleness', 'By how many steps what was applied lagged, mean over all steps', stale),
    some('consensus') &&
        panel(
            'Distance to consensus',
            'Root mean square distance of the workers\' weights to their common model, where they may differ',
            consensusBy),
  ].filter(Boolean);
}

// ---- theory ----
// series: [{v, points: [{x, y, tip}], line: x => y}], both axes logarithmic
function logChart(width, o) {
  const height = Math.max(260, Math.min(420, width * .5)), left = 58, right = 14, top = 12, bottom = 40;
  const all = o.series.flatMap(s => s.points);
  if (!all.length) return el('p', {class: 'note'}, 'Nothing to draw yet.');
  const xs = all.map(p => p.x), x0 = Math.min(...xs), x1 = Math.max(...xs);
  const ys = all.map(p => p.y).concat(
      o.series.flatMap(s => s.line ? [s.line(s.points[0].x), s.line(s.points[s.points.length - 1].x)] : []));
  const y0 = Math.min(...ys) * .93, y1 = Math.max(...ys) * 1.07;
  const along = (t, a, b) => b > a ? Math.log(t / a) / Math.log(b / a) : .5;
  const X = x => left + 8 + (width - left - right - 16) * along(x, x0, x1),
        Y = y => height - bottom - (height - top - bottom) * along(y, y0, y1);
  const node = svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': o.title});
  for (const t of logTicks(y0, y1))
    node.append(
        svg('line', {class: 'grid', x1: left, x2: width - right, y1: Y(t), y2: Y(t)}),
        label(String(t), left - 6, Y(t) + 4, 'end'));
  node.append(svg('line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
  for (const t of logTicks(x0, x1))
    node.append(
        svg('line', {class: 'axis', x1: X(t), x2: X(t), y1: height - bottom, y2: height - bottom + 4}),
        label(short(t), X(t), height - bottom + 17));
  node.append(label(o.xLabel, (left + width - right) / 2, height - 5));
  for (const {v, points, line} of o.series) {
    const a = points[0].x, b = points[points.length - 1].x;
    if (line)
      node.append(svg('line', {
        x1: X(a),
        y1: Y(line(a)),
        x2: X(b),
        y2: Y(line(b)),
        stroke: colour(v),
        'stroke-width': 1.5,
        'stroke-dasharray': '6 5',
        opacity: .8
      }));
  }
  for (const {v, points} of o.series) {
    node.append(svg('path', {
      d: 'M' + points.map(p => `${X(p.x)} ${Y(p.y)}`).join('L'),
      fill: 'none',
      stroke: colour(v),
      'stroke-width': 1,
      opacity: .5
    }));
    for (const p of points) {
      const mark = marker(v, X(p.x), Y(p.y), points.length > 40 ? 2 : 4);
      for (const kind of ['pointermove', 'pointerdown'])
        mark.addEventListener(kind, event => showTip(event, ...p.tip()));
      mark.addEventListener('pointerleave', hideTip);
      node.append(mark);
    }
  }
  return node;
}
const rateOf = v => D.theory && D.theory.rates.find(r => r.variant === V[v].label && r.points.length > 1);
function gaps(width) {
  return logChart(width, {
    title: 'Gap to the best loss',
    xLabel: 'steps T of a worker (logarithmic)',
    series: shown().filter(rateOf).map(v => {
      const r = rateOf(v);
      return {
        v,
        line: known(r.constant) && (T => r.constant / Math.sqrt(r.workers * T)),
        points: r.points.map(
            p => ({
              x: p.step,
              y: p.gap,
              tip: () =>
                  [el('div', {}, el('b', {}, ...named(v))), tipRow('step', grouped(p.step)),
                   tipRow('gap', digits3(p.gap)),
                   ...(known(r.constant) ? [tipRow('c/√(mT)', digits3(r.constant / Math.sqrt(r.workers * p.step)))] :
                                           [])]
            }))
      };
    })
  });
}
function theoryPanel() {
  if (!V.some((_, v) => rateOf(v))) return [];
  const rows = V.map((_, v) => v).filter(v => rateOf(v)).map(v => {
    const r = rateOf(v);
    return el(
        'tr', {}, el('td', {class: 'left'}, swatch(v), ' ' + V[v].label), el('td', {}, String(r.workers)),
        el('td', {}, known(r.slope) ? r.slope.toFixed(2).replace('-', '−') : '–'),
        el('td', {}, r.bound ? '−0.50' : '–'), el('td', {}, digits3(r.constant)));
  });
  const table =
      el('table', {class: 'narrow'},
         el('thead', {},
            el('tr', {},
               ...['variant', 'workers m', 'slope measured', 'in theory', 'c'].map(
                   (h, i) => el('th', {class: i ? '' : 'left'}, h)))),
         el('tbody', {}, ...rows));
  const note =
      'Points: the mean training loss of all steps so far, less the lowest that any run saw between two tests ' +
      `(${
          digits3(
              D.theory.best_loss)}). Dashed: c/√(mT), its constant c fitted to the points by least squares of the ` +
      'logarithms with the slope fixed at −1/2; without a slope in theory it is drawn to compare, nothing more.';
  const node = panel('Theory: gap to the best loss by steps', note, gaps);
  node.classList.add('wide');
  node.append(
      el('div', {class: 'scroll'}, table),
      ...D.theory.words.map(
          w => el('p', {class: 'note said'}, w.replace(/^theory: /, '').replace(/^./, c => c.toUpperCase()))));
  return [node];
}
