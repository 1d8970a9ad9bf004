#include "trireme/report/compare/comparison_page.h"

namespace trireme::train {

const char kComparisonScript[] = R"js(
const D = JSON.parse(document.getElementById('data').textContent);
const names = D.varied.map(v => v.name), V = D.variants;
const runsOf = V.map(v => D.runs.filter(r => r.variant === v.label && r.status === 'finished'));
const most = Math.max(...V.map(v => v.finished), 0);
const hidden = new Set(), shown = () => V.map((_, v) => v).filter(v => !hidden.has(v) && V[v].finished);
const theme = new URLSearchParams(location.hash.slice(1)).get('theme');
if (theme) document.documentElement.dataset.theme = theme;
const scaled = (s, f) => s.count ? {...s, mean: f(s.mean), low: Math.min(f(s.low), f(s.high)), high: Math.max(f(s.low), f(s.high)), deviation: Math.abs(f(s.deviation || 0) - f(0))} : s;
const named = v => [swatch(v), V[v].label];
// What runs are judged by: the metric and how its values are told.
const M = D.metric, TEST = 'test_' + M.key, SCALE = M.share ? 100 : 1;
const judged = x => M.share ? per_cent(x) : digits4(x), bounds = M.share ? {} : {least: -Infinity, most: Infinity};
const unitNote = M.share ? '%, ' : '';
const how = most >= 3 ? 'mean ± standard deviation over seeds' : most === 2 ? 'mean of two seeds, lowest to highest' : 'one seed each';

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
    for (const s of series) for (const p of s.points) p.tip = () => {
      if (x !== 'epoch') return [el('div', {}, el('b', {}, ...named(p.v))), tipRow('after', seconds(p.x)), tipRow('epoch', String(p.epoch)), tipRow(`test ${M.title}`, `${plain(p.s.mean)} ${spreadWords(p.s, plain)}`)];
      const same = series.flatMap(o => o.points.filter(q => q.epoch === p.epoch)).sort((a, b) => (b.s.mean - a.s.mean) * (M.higher_is_better ? 1 : -1));
      return [el('b', {}, `epoch ${p.epoch}`), ...same.slice(0, 12).map(q => tipRow(named(q.v), `${plain(q.s.mean)} ${spreadWords(q.s, plain)}`))];
    };
    return lineChart(width, {title: `Test ${M.title}`, ...bounds, series, rules: aims(), xLabel, ...(x === 'epoch' ? {whole: true} : {x: [0, Math.max(0, ...series.flatMap(s => s.points.map(p => p.x)))]})});
  };
}
let axis = 0;
// The share that is told wrong; of other metrics the value.
const asError = M.share && M.higher_is_better ? a => 100 * (1 - a) : a => SCALE * a;
const errorTitle = M.key === 'accuracy' ? 'error' : M.share && M.higher_is_better ? `1 − ${M.title}` : M.title;
function errorBy(width) {
  const values = V.map(v => Number(v.values[axis])), numeric = values.every((x, v) => isFinite(x) && V[v].values[axis] !== '');
  const positive = numeric && Math.min(...values) > 0, log = positive && Math.max(...values) >= 3 * Math.min(...values);
  const texts = [...new Set(V.map(v => v.values[axis]))];
  const place = v => numeric ? values[v] : texts.indexOf(V[v].values[axis]);
  const groups = new Map();
  for (const v of shown()) {
    const rest = names.map((n, k) => k === axis ? null : `${n}=${V[v].values[k]}`).filter(Boolean).join(' ');
    if (V[v][TEST].count) groups.set(rest, [...(groups.get(rest) || []), v]);
  }
  const series = [...groups].map(([rest, list], i) => ({v: 8 * i, line: numeric ? 'var(--soft)' : 'none', whiskers: true, end: rest,
    points: list.sort((a, b) => place(a) - place(b)).map(v => {
      const s = scaled(V[v][TEST], asError);
      return {v, x: place(v), s, tip: () => [el('div', {}, el('b', {}, ...named(v))), tipRow(`test ${errorTitle}`, `${plain(s.mean)} ${spreadWords(s, plain)}`), tipRow('seeds', String(s.count))]};
    })}));
  const xs = V.map((_, v) => place(v)), ends = numeric ? [Math.min(...xs), Math.max(...xs)] : [-.3, texts.length - .7];
  const xTicks = numeric && !log && texts.length > 12 ? undefined : texts.map((t, i) => [numeric ? Number(t) : i, t]).sort((a, b) => a[0] - b[0]);
  return lineChart(width, {title: `Test ${errorTitle} by ${names[axis]}`, ...bounds, series, log, x: ends, xTicks, stagger: !numeric && texts.length > 3, xLabel: names[axis] + (names[axis] === 'batch' ? ', samples per worker' : '') + (log ? ' (logarithmic)' : '')});
}
function barsOf(key, format, xLabel, title, scale = 1) {
  return width => barChart(width, {title, xLabel, rows: shown().map(v => {
    const s = V[v][key], some = s.count && s.count < V[v].finished ? ` [${s.count}/${V[v].finished}]` : '';
    return {name: V[v].label, v, s: scaled(s, x => x / scale), text: (s.count ? format(s.mean) : 'not reached') + some, parts: [{size: s.mean / scale, fill: colour(v),
      tip: () => [el('div', {}, el('b', {}, ...named(v))), tipRow('mean', format(s.mean)), ...(s.count > 1 ? [tipRow('lowest', format(s.low)), tipRow('highest', format(s.high))] : []), tipRow('seeds', String(s.count))]}]};
  })});
}
const PARTS = [['forward', 'forward'], ['backward', 'backward'], ['exposed', 'communication, exposed'], ['optimizer', 'optimizer'], ['other', 'other']];
let unit = 0;
function breakdown(width) {
  const rows = shown().map(v => {
    const b = V[v].breakdown_ms, whole = PARTS.reduce((sum, [key]) => sum + (b[key] || 0), 0);
    const scale = unit ? 100 / (whole || 1) : 1;
    return {name: V[v].label, v, text: ms(whole), parts: PARTS.map(([key, word], i) => ({size: (b[key] || 0) * scale, fill: `var(--p${i})`,
      tip: () => [el('b', {}, V[v].label), ...PARTS.map(([k, w], j) => tipRow(k === key ? el('b', {}, w) : w, `${ms(b[k])}  ${(100 * (b[k] || 0) / (whole || 1)).toFixed(1)}%`)), tipRow('whole step', ms(whole))]}))};
  });
  return barChart(width, {title: 'Where the time of a step goes', rows, xLabel: unit ? 'share of a step, %' : 'ms per step'});
}

// ---- the page ----
const drawn = [];
function panel(title, note, draw, ...extra) {
  const plot = el('div', {class: 'plot'});
  const picks = extra.filter(e => e.className === 'pick'), rest = extra.filter(e => e.className !== 'pick');
  drawn.push(() => { const width = Math.floor(plot.clientWidth); if (width > 0) plot.replaceChildren(draw(width)); });
  return el('section', {class: 'panel'}, el('div', {class: 'head'}, el('h2', {}, title), ...picks), el('p', {class: 'note'}, note), ...rest, plot);
}
function pick(words, get, set) {
  const node = el('div', {class: 'pick', role: 'group'});
  node.append(...words.map((word, i) => {
    const button = el('button', {'aria-pressed': i === get()}, word);
    button.onclick = () => { set(i); [...node.children].forEach((b, k) => b.setAttribute('aria-pressed', k === i)); redraw(); };
    return button;
  }));
  return node;
}
const redraw = () => { hideTip(); drawn.forEach(draw => draw()); };

function legend() {
  return el('div', {class: 'legend', role: 'group', 'aria-label': 'variants shown'}, ...V.map((variant, v) => {
    const button = el('button', {'aria-pressed': true, title: 'show or hide'}, swatch(v), variant.label);
    button.onclick = () => { hidden.has(v) ? hidden.delete(v) : hidden.add(v); button.setAttribute('aria-pressed', !hidden.has(v)); redraw(); };
    return button;
  }));
}
const COSTS = [['target_bytes', `sent to ${judged(D.target)}`, bytes], ['bytes_sent', 'sent by a worker', bytes], ['wait_share', 'waiting', per_cent],
  ['staleness_mean', 'staleness', digits3], ['staleness_max', 'most stale', digits3], ['consensus', 'consensus', digits3]].filter(m => some(m[0]));
const MEASURES = [[TEST, `test ${M.title}`, judged], ['target_seconds', `time to ${judged(D.target)}`, seconds], ['samples_per_s', 'samples/s', grouped], ['steps', 'steps', grouped],
  ['train_seconds', 'training time', seconds], ['best_' + M.key, 'best epoch', judged], ['train_' + M.key, `training ${M.title}`, judged]];
MEASURES.splice(D.varied.some(v => v.key.startsWith('sync.')) ? 2 : MEASURES.length, 0, ...COSTS);
function numbers() {
  const cell = (variant, [key, , format]) => {
    const s = variant[key], mark = s.standing === 'within spread' ? ' ≈' : '';
    const some = s.count && s.count < variant.finished ? ` [${s.count}/${variant.finished}]` : '';
    return el('td', {class: s.standing === 'best' ? 'best' : ''}, format(s.mean), el('small', {}, ' ' + spreadWords(s, format) + some + mark));
  };
  const table = el('table', {}, el('thead', {}, el('tr', {}, ...names.map(n => el('th', {class: 'left'}, n)), el('th', {}, 'runs'), ...MEASURES.map(m => el('th', {}, m[1])))),
    el('tbody', {}, ...V.map((variant, v) => el('tr', {}, ...variant.values.map((value, k) => el('td', {class: 'left'}, ...(k ? [value] : [swatch(v), ' ' + value]))),
      el('td', {}, String(variant.finished) + (variant.unfinished ? ` of ${variant.finished + variant.unfinished}` : '')), ...MEASURES.map(m => cell(variant, m))))));
  const words = most > 1 ? `${how[0].toUpperCase() + how.slice(1)}. Bold: the best mean. ≈: no further from it than the spread of both, so not told apart.`
    : 'One seed each: nothing is known of the spread, so that small differences may be chance.';
  const target = D.target_given ? '' : ` The target is the ${M.higher_is_better ? 'lowest' : 'highest'} mean test ${M.title} of the variants.`;
  return el('section', {class: 'panel'}, el('h2', {}, 'Numbers'), el('p', {class: 'note'}, words + target), el('div', {class: 'scroll'}, table));
}
function allRuns() {
  const head = ['variant', 'seed', 'status', `test ${M.title}`, `time to ${judged(D.target)}`, 'training time', 'samples/s', 'folder'];
  const rows = D.runs.map(r => el('tr', {}, el('td', {class: 'left'}, r.variant), el('td', {}, String(r.seed)), el('td', {class: r.error ? 'left wrap' : 'left'}, r.status + (r.error ? ': ' + r.error : '')),
    el('td', {}, judged(r[TEST])), el('td', {}, seconds(r.target_seconds)), el('td', {}, seconds(r.train_seconds)), el('td', {}, grouped(r.samples_per_s)), el('td', {class: 'left'}, r.out)));
  return el('details', {class: 'panel'}, el('summary', {}, `All ${D.runs.length} runs`), el('div', {class: 'scroll'},
    el('table', {}, el('thead', {}, el('tr', {}, ...head.map((h, i) => el('th', {class: [0, 2, 7].includes(i) ? 'left' : ''}, h)))), el('tbody', {}, ...rows))));
}
function settings() {
  const list = [];
  const walk = (node, path) => { for (const [key, value] of Object.entries(node)) value && typeof value === 'object' ? walk(value, [...path, key]) : list.push([[...path, key].join('.'), value]); };
  walk(D.config, []);
  const skip = new Set([...D.varied.map(v => v.key), 'out.dir', 'train.seed', 'train.target']);
  return el('details', {class: 'panel'}, el('summary', {}, 'Settings that all share'), el('dl', {},
    ...list.filter(([key, value]) => !skip.has(key) && value !== '').map(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, String(value))))));
}
function page() {
  const c = D.config, fixed = (key, word) => D.varied.some(v => v.key === key) ? null : word;
  const lengthOf = c.train.steps > 0 ? `${c.train.steps} steps` : `${c.train.epochs} ${c.train.epochs === 1 ? 'epoch' : 'epochs'}`;
  const summary = [[fixed('model.name', c.model.name), fixed('data.name', `on ${c.data.name}`)].filter(Boolean).join(' '), fixed('run.workers', `${c.run.workers} ${c.run.workers === 1 ? 'worker' : 'workers'}`),
    fixed('train.batch', `batch ${c.train.batch} per worker`), fixed('train.optimizer', c.train.optimizer), fixed('train.epochs', lengthOf), how].filter(Boolean).join(' · ');
  const bad = D.runs.filter(r => r.status !== 'finished');
  const aim = known(D.target) ? judged(D.target) : 'the target';
  const keys = el('div', {class: 'keys'}, ...PARTS.map(([, word], i) => el('span', {}, el('i', {style: `background:var(--p${i})`}), word)));
  document.model.append(el('main', {}, el('h1', {}, document.title), el('p', {class: 'summary'}, summary),
    ...(bad.length ? [el('p', {class: 'warn'}, `${bad.length} of ${D.runs.length} runs did not finish and are left out of all numbers: ` + bad.slice(0, 4).map(r => `${r.variant} seed ${r.seed} ${r.status}${r.error ? ` (${r.error})` : ''}`).join('; ') + (bad.length > 4 ? '; …' : ''))] : []),
    legend(), numbers(), el('div', {class: 'charts'},
      panel(`Test ${M.title} by epoch`, `${unitNote}when it was tested; ${most > 1 ? 'bands: ' : ''}${how}`, metricBy('epoch', 'epoch')),
      panel(`Test ${M.title} by training time`, `${unitNote}without the time that testing takes`, metricBy('train_seconds', 'seconds of training')),
      ...costPanels(),
      panel(`Test ${errorTitle} at the end`, (M.share ? '% of test samples; ' : '') + 'whiskers: ' + how, errorBy, ...(names.length > 1 ? [pick(names, () => axis, i => { axis = i; })] : [])),
      panel(`Time to ${aim} test ${M.title}`, 'Seconds of training until the first test that reached it; shorter is better', barsOf('target_seconds', seconds, 'seconds', `Time to ${M.title}`)),
      panel('Throughput', 'Training samples per second, all workers together; longer is better', barsOf('samples_per_s', grouped, 'samples per second', 'Throughput')),
      panel('Where the time of a step goes', 'Mean over steps and seeds', breakdown, pick(['ms', 'share'], () => unit, i => { unit = i; }), keys),
      ...theoryPanel()),
    allRuns(), settings()), tip);
  redraw();
  let width = innerWidth;
  addEventListener('resize', () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
  addEventListener('scroll', hideTip, {passive: true});
}
page();
)js";

}  // namespace trireme::train
