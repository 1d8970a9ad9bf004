// Runs compared: panels, tables, the page.
// ---- the page ----
const drawn = [];
function panel(title, note, draw, ...extra) {
  const plot = el('div', {class: 'plot'});
  const picks = extra.filter(e => e.className === 'pick'), rest = extra.filter(e => e.className !== 'pick');
  drawn.push(() => {
    const width = Math.floor(plot.clientWidth);
    if (width > 0) plot.replaceChildren(draw(width));
  });
  return el(
      'section', {class: 'panel'}, el('div', {class: 'head'}, el('h2', {}, title), ...picks),
      el('p', {class: 'note'}, note), ...rest, plot);
}
function pick(words, get, set) {
  const node = el('div', {class: 'pick', role: 'group'});
  node.append(...words.map((word, i) => {
    const button = el('button', {'aria-pressed': i === get()}, word);
    button.onclick = () => {
      set(i);
      [...node.children].forEach((b, k) => b.setAttribute('aria-pressed', k === i));
      redraw();
    };
    return button;
  }));
  return node;
}
const redraw = () => {
  hideTip();
  drawn.forEach(draw => draw());
};

function legend() {
  return el('div', {class: 'legend', role: 'group', 'aria-label': 'variants shown'}, ...V.map((variant, v) => {
    const button = el('button', {'aria-pressed': true, title: 'show or hide'}, swatch(v), variant.label);
    button.onclick = () => {
      hidden.has(v) ? hidden.delete(v) : hidden.add(v);
      button.setAttribute('aria-pressed', !hidden.has(v));
      redraw();
    };
    return button;
  }));
}
const COSTS = [
  ['target_bytes', `sent to ${judged(D.target)}`, bytes], ['bytes_sent', 'sent by a worker', bytes],
  ['wait_share', 'waiting', per_cent], ['staleness_mean', 'staleness', digits3],
  ['staleness_max', 'most stale', digits3], ['consensus', 'consensus', digits3]
].filter(m => some(m[0]));
const MEASURES = [
  [TEST, `test ${M.title}`, judged], ['target_seconds', `time to ${judged(D.target)}`, seconds],
  ['samples_per_s', 'samples/s', grouped], ['steps', 'steps', grouped], ['train_seconds', 'training time', seconds],
  ['best_' + M.key, 'best epoch', judged], ['train_' + M.key, `training ${M.title}`, judged]
];
MEASURES.splice(D.varied.some(v => v.key.startsWith('sync.')) ? 2 : MEASURES.length, 0, ...COSTS);
function numbers() {
  const cell = (variant, [key, , format]) => {
    const s = variant[key], mark = s.standing === 'within spread' ? ' ≈' : '';
    const some = s.count && s.count < variant.finished ? ` [${s.count}/${variant.finished}]` : '';
    return el(
        'td', {class: s.standing === 'best' ? 'best' : ''}, format(s.mean),
        el('small', {}, ' ' + spreadWords(s, format) + some + mark));
  };
  const table =
      el('table', {},
         el('thead', {},
            el('tr', {}, ...names.map(n => el('th', {class: 'left'}, n)), el('th', {}, 'runs'),
               ...MEASURES.map(m => el('th', {}, m[1])))),
         el('tbody', {},
            ...V.map(
                (variant, v) =>
                    el('tr', {},
                       ...variant.values.map(
                           (value, k) => el('td', {class: 'left'}, ...(k ? [value] : [swatch(v), ' ' + value]))),
                       el('td', {},
                          String(variant.finished) +
                              (variant.unfinished ? ` of ${variant.finished + variant.unfinished}` : '')),
                       ...MEASURES.map(m => cell(variant, m))))));
  const words = most > 1 ?
      `${
          how[0].toUpperCase() +
          how.slice(1)}. Bold: the best mean. ≈: no further from it than the spread of both, so not told apart.` :
      'One seed each: nothing is known of the spread, so that small differences may be chance.';
  const target = D.target_given ?
      '' :
      ` The target is the ${M.higher_is_better ? 'lowest' : 'highest'} mean test ${M.title} of the variants.`;
  return el(
      'section', {class: 'panel'}, el('h2', {}, 'Numbers'), el('p', {class: 'note'}, words + target),
      el('div', {class: 'scroll'}, table));
}
function allRuns() {
  const head = [
    'variant', 'seed', 'status', `test ${M.title}`, `time to ${judged(D.target)}`, 'training time', 'samples/s',
    'folder'
  ];
  const rows = D.runs.map(
      r =>
          el('tr', {}, el('td', {class: 'left'}, r.variant), el('td', {}, String(r.seed)),
             el('td', {class: r.error ? 'left wrap' : 'left'}, r.status + (r.error ? ': ' + r.error : '')),
             el('td', {}, judged(r[TEST])), el('td', {}, seconds(r.target_seconds)),
             el('td', {}, seconds(r.train_seconds)), el('td', {}, grouped(r.samples_per_s)),
             el('td', {class: 'left'}, r.out)));
  return el(
      'details', {class: 'panel'}, el('summary', {}, `All ${D.runs.length} runs`),
      el('div', {class: 'scroll'},
         el('table', {},
            el('thead', {},
               el('tr', {}, ...head.map((h, i) => el('th', {class: [0, 2, 7].includes(i) ? 'left' : ''}, h)))),
            el('tbody', {}, ...rows))));
}
function settings() {
  const list = [];
  const walk = (node, path) => {
    for (const [key, value] of Object.entries(node))
      value && typeof value === 'object' ? walk(value, [...path, key]) : list.push([[...path, key].join('.'), value]);
  };
  walk(D.config, []);
  const skip = new Set([...D.varied.map(v => v.key), 'out.dir', 'train.seed', 'train.target']);
  return el(
      'details', {class: 'panel'}, el('summary', {}, 'Settings that all share'),
      el('dl', {},
         ...list.filter(([key, value]) => !skip.has(key) && value !== '')
             .map(([key, value]) => el('div', {}, el('dt', {}, key), el('dd', {}, String(value))))));
}
function unfinished() {
  const bad = D.runs.filter(r => r.status !== 'finished');
  if (!bad.length) return [];
  const each = bad.slice(0, 4).map(r => `${r.variant} seed ${r.seed} ${r.status}${r.error ? ` (${r.error})` : ''}`);
  const words = `${bad.length} of ${D.runs.length} runs did not finish and are left out of all numbers: `;
  return [el('p', {class: 'warn'}, words + each.join('; ') + (bad.length > 4 ? '; …' : ''))];
}
function page() {
  const c = D.config, fixed = (key, word) => D.varied.some(v => v.key === key) ? null : word;
  const lengthOf =
      c.train.steps > 0 ? `${c.train.steps} steps` : `${c.train.epochs} ${c.train.epochs === 1 ? 'epoch' : 'epochs'}`;
  const summary = [
    [fixed('model.name', c.model.name), fixed('data.name', `on ${c.data.name}`)].filter(Boolean).join(' '),
    fixed('run.workers', `${c.run.workers} ${c.run.workers === 1 ? 'worker' : 'workers'}`),
    fixed('train.batch', `batch ${c.train.batch} per worker`), fixed('train.optimizer', c.train.optimizer),
    fixed('train.epochs', lengthOf), how
  ].filter(Boolean).join(' · ');
  const aim = known(D.target) ? judged(D.target) : 'the target';
  const keys =
      el('div', {class: 'keys'},
         ...PARTS.map(([, word], i) => el('span', {}, el('i', {style: `background:var(--p${i})`}), word)));
  const axisPick = names.length > 1 ? [pick(names, () => axis, i => axis = i)] : [];
  const charts =
      el('div', {class: 'charts'},
         panel(
             `Test ${M.title} by epoch`, `${unitNote}when it was tested; ${most > 1 ? 'bands: ' : ''}${how}`,
             metricBy('epoch', 'epoch')),
         panel(
             `Test ${M.title} by training time`, `${unitNote}without the time that testing takes`,
             metricBy('train_seconds', 'seconds of training')),
         ...costPanels(),
         panel(
             `Test ${errorTitle} at the end`, (M.share ? '% of test samples; ' : '') + 'whiskers: ' + how, errorBy,
             ...axisPick),
         panel(
             `Time to ${aim} test ${M.title}`,
             'Seconds of training until the first test that reached it; shorter is better',
             barsOf('target_seconds', seconds, 'seconds', `Time to ${M.title}`)),
         panel(
             'Throughput', 'Training samples per second, all workers together; longer is better',
             barsOf('samples_per_s', grouped, 'samples per second', 'Throughput')),
         panel(
             'Where the time of a step goes', 'Mean over steps and seeds', breakdown,
             pick(['ms', 'share'], () => unit, i => unit = i), keys),
         ...theoryPanel());
  document.body.append(
      el('main', {}, pageHeader(document.title, summary), ...unfinished(), legend(), numbers(), charts, allRuns(),
         settings()),
      tip);
  redraw();
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth !== width) {
      width = innerWidth;
      redraw();
    }
  });
  addEventListener('scroll', hideTip, {passive: true});
}
page();
