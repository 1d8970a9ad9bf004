// Runs compared: reads compare.json, draws what was measured of each variant, fills the page.
const names = D.varied.map(v => v.name), V = D.variants;
const runsOf = V.map(v => D.runs.filter(r => r.variant === v.label && r.status === 'finished'));
const most = Math.max(...V.map(v => v.finished), 0);
const hidden = new Set(), shown = () => V.map((_, v) => v).filter(v => !hidden.has(v) && V[v].finished);
const scaled = (s, f) => s.count ? {
  ...s,
  mean: f(s.mean),
  low: Math.min(f(s.low), f(s.high)),
  high: Math.max(f(s.low), f(s.high)),
  deviation: Math.abs(f(s.deviation || 0) - f(0))
} :
                                   s;
const named = v => [swatch(v), V[v].label];
// What runs are judged by: the metric and how its values are told.
const M = D.metric, TEST = 'test_' + M.key, SCALE = M.share ? 100 : 1;
const judged = x => M.share ? per_cent(x) : digits4(x), bounds = M.share ? {} : {least: -Infinity, most: Infinity};
const unitNote = M.share ? '%, ' : '';
const how = most >= 3 ? 'mean ± standard deviation over seeds' :
    most === 2        ? 'mean of two seeds, lowest to highest' :
                        'one seed each';

// ---- charts ----
// Means over the seeds at the same point of each.
function curve(v, x, y = TEST, scale = SCALE) {
  const points = [], runs = runsOf[v];
  for (let k = 0; k < Math.max(0, ...runs.map(r => r.curve.length)); ++k) {
    const at = runs.map(r => r.curve[k]).filter(p => p && known(p[x]) && known(p[y]));
    if (!at.length) continue;
    const s = scaled(spreadOf(at.map(p => p[y])), value => scale * value);
    points.push({v, k, x: spreadOf(at.map(p => p[x])).mean, epoch: at[0].epoch, s});
  }
  return points;
}
const aims = () => known(D.target) ? [{y: SCALE * D.target, text: `target ${judged(D.target)}`}] : [];
const plain = x => M.share ? x.toFixed(2) + '%' : digits4(x);
function metricBy(x, xLabel) {
  return width => {
    const series = shown().map(v => ({v, points: curve(v, x)})).filter(s => s.points.length);
    for (const s of series)
      for (const p of s.points)
        p.tip = () => {
          if (x !== 'epoch')
            return [
              el('div', {}, el('b', {}, ...named(p.v))), tipRow('after', seconds(p.x)),
              tipRow('epoch', String(p.epoch)),
              tipRow(`test ${M.title}`, `${plain(p.s.mean)} ${spreadWords(p.s, plain)}`)
            ];
          const same = series.flatMap(o => o.points.filter(q => q.epoch === p.epoch))
                           .sort((a, b) => (b.s.mean - a.s.mean) * (M.higher_is_better ? 1 : -1));
          return [
            el('b', {}, `epoch ${p.epoch}`),
            ...same.slice(0, 12).map(q => tipRow(named(q.v), `${plain(q.s.mean)} ${spreadWords(q.s, plain)}`))
          ];
        };
    return lineChart(width, {
      title: `Test ${M.title}`,
      ...bounds,
      series,
      rules: aims(),
      xLabel,
      ...(x === 'epoch' ? {whole: true} : {x: [0, Math.max(0, ...series.flatMap(s => s.points.map(p => p.x)))]})
    });
  };
}
let axis = 0;
// The share that is told wrong; of other metrics the value.
const asError = M.share&& M.higher_is_better ? a => 100 * (1 - a) : a => SCALE * a;
const errorTitle = M.key === 'accuracy' ? 'error' : M.share && M.higher_is_better ? `1 − ${M.title}` : M.title;
function errorBy(width) {
  const values = V.map(v => Number(v.values[axis])),
        numeric = values.every((x, v) => isFinite(x) && V[v].values[axis] !== '');
  const positive = numeric && Math.min(...values) > 0, log = positive && Math.max(...values) >= 3 * Math.min(...values);
  const texts = [...new Set(V.map(v => v.values[axis]))];
  const place = v => numeric ? values[v] : texts.indexOf(V[v].values[axis]);
  const groups = new Map();
  for (const v of shown()) {
    const rest = names.map((n, k) => k === axis ? null : `${n}=${V[v].values[k]}`).filter(Boolean).join(' ');
    if (V[v][TEST].count) groups.set(rest, [...(groups.get(rest) || []), v]);
  }
  const series = [...groups].map(([rest, list], i) => ({
                                   v: 8 * i,
                                   line: numeric ? 'var(--soft)' : 'none',
                                   whiskers: true,
                                   end: rest,
                                   points: list.sort((a, b) => place(a) - place(b)).map(v => {
                                     const s = scaled(V[v][TEST], asError);
                                     return {
                                       v,
                                       x: place(v),
                                       s,
                                       tip: () =>
                                           [el('div', {}, el('b', {}, ...named(v))),
                                            tipRow(`test ${errorTitle}`, `${plain(s.mean)} ${spreadWords(s, plain)}`),
                                            tipRow('seeds', String(s.count))]
                                     };
                                   })
                                 }));
  const xs = V.map((_, v) => place(v)), ends = numeric ? [Math.min(...xs), Math.max(...xs)] : [-.3, texts.length - .7];
  const xTicks = numeric && !log && texts.length > 12 ?
      undefined :
      texts.map((t, i) => [numeric ? Number(t) : i, t]).sort((a, b) => a[0] - b[0]);
  return lineChart(width, {
    title: `Test ${errorTitle} by ${names[axis]}`,
    ...bounds,
    series,
    log,
    x: ends,
    xTicks,
    stagger: !numeric && texts.length > 3,
    xLabel: names[axis] + (names[axis] === 'batch' ? ', samples per worker' : '') + (log ? ' (logarithmic)' : '')
  });
}
function barsOf(key, format, xLabel, title, scale = 1) {
  return width => barChart(width, {
           title,
           xLabel,
           rows: shown().map(v => {
             const s = V[v][key], some = s.count && s.count < V[v].finished ? ` [${s.count}/${V[v].finished}]` : '';
             return {
               name: V[v].label,
               v,
               s: scaled(s, x => x / scale),
               text: (s.count ? format(s.mean) : 'not reached') + some,
               parts: [{
                 size: s.mean / scale,
                 fill: colour(v),
                 tip: () =>
                     [el('div', {}, el('b', {}, ...named(v))), tipRow('mean', format(s.mean)),
                      ...(s.count > 1 ? [tipRow('lowest', format(s.low)), tipRow('highest', format(s.high))] : []),
                      tipRow('seeds', String(s.count))]
               }]
             };
           })
         });
}
const PARTS = [
  ['forward', 'forward'], ['backward', 'backward'], ['exposed', 'communication, exposed'], ['optimizer', 'optimizer'],
  ['other', 'other']
];
let unit = 0;
function breakdown(width) {
  const rows = shown().map(v => {
    const b = V[v].breakdown_ms, whole = PARTS.reduce((sum, [key]) => sum + (b[key] || 0), 0);
    const scale = unit ? 100 / (whole || 1) : 1;
    return {
      name: V[v].label,
      v,
      text: ms(whole),
      parts: PARTS.map(([key, word], i) => ({
                         size: (b[key] || 0) * scale,
                         fill: `var(--p${i})`,
                         tip: () =>
                             [el('b', {}, V[v].label),
                              ...PARTS.map(
                                  ([k, w], j) => tipRow(
                                      k === key ? el('b', {}, w) : w,
                                      `${ms(b[k])}  ${(100 * (b[k] || 0) / (whole || 1)).toFixed(1)}%`)),
                              tipRow('whole step', ms(whole))]
                       }))
    };
  });
  return barChart(
      width, {title: 'Where the time of a step goes', rows, xLabel: unit ? 'share of a step, %' : 'ms per step'});
}
