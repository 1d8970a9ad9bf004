#include "trireme/collective/draw/page.h"

namespace trireme {

const char kPageScript[] = R"js(
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const P = D.ranks, R = D.rounds.length;
const hash = new URLSearchParams(location.hash.slice(1));
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
const OUT = D.buffers.findIndex(b => b.output);
const whole = D.buffers[OUT].chunks === 1 && D.word === 'chunk';  // the vector is never cut
let round = 0, playing = null, run = 0;
let byShare = hash.get('colour') ? hash.get('colour') === 'share' : P > 12;
if (hash.get('theme')) document.documentElement.dataset.theme = hash.get('theme');

// states[k]: what every rank holds after k rounds
const states = [D.start];
for (const r of D.rounds) {
  const next = structuredClone(states[states.length - 1]);
  for (const [rank, buffer, chunk, value] of r.changes) next[rank][buffer][chunk] = value;
  states.push(next);
}

// ---- small tools ----
const turn = share => `hsl(${Math.round(212 + 360 * share) % 360} var(--sat) var(--light))`;
const hue = rank => turn(rank / P);
const pieces = D.word === 'block' ? P : D.buffers[OUT].chunks;
const pieceOf = v => D.values[v][0], ranksOf = v => D.values[v][1];
// Where all data comes from one root, colours tell pieces apart; else they tell where data came from.
const tint = v => D.rooted ? turn(pieceOf(v) / pieces) : hue(ranksOf(v)[0]);
const capital = text => /^[a-z]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
function ranges(list) {
  const out = [];
  for (let i = 0; i < list.length;) {
    let j = i;
    while (j + 1 < list.length && list[j + 1] === list[j] + 1) ++j;
    out.push(j > i + 1 ? `${list[i]}–${list[j]}` : list.slice(i, j + 1).join(', '));
    i = j + 1;
  }
  return out.join(', ');
}
function setText(v) {  // contributions as one character per rank
  if (!v) return '·';
  if (!D.sums) return D.rooted ? whole ? '✓' : String(pieceOf(v)) : String(ranksOf(v)[0]);
  if (P > 10) return `${ranksOf(v).length}/${P}`;
  return Array.from({length: P}, (_, i) => ranksOf(v).includes(i) ? i : '·').join('');
}
function saying(v) {
  if (!v) return 'nothing';
  if (D.barrier) return `knows that ${ranges(ranksOf(v))} arrived`;
  if (whole) return D.sums ? `contributions of ${ranges(ranksOf(v))}` : `the vector of rank ${ranksOf(v)[0]}`;
  return D.sums ? `${D.word} ${pieceOf(v)}: contributions of ${ranges(ranksOf(v))}` : `${D.word} ${pieceOf(v)} of rank ${ranksOf(v)[0]}`;
}

// ---- where the ranks stand ----
// Cells worth drawing, by rank and buffer: those that ever hold something, and all of an output that will.
const used = Array.from({length: P}, (_, rank) => D.buffers.map((b, i) => {
  const all = Array.from({length: b.chunks}, (_, c) => c);
  const ever = all.filter(c => states.some(state => state[rank][i][c]));
  return i === OUT && (ever.length || D.wanted[rank].some(w => w)) ? all : ever;
}));
const chunksShown = Math.max(...used.flat().map(list => list.length), 1);
const perRow = chunksShown <= 8 ? Math.max(chunksShown, 1) : Math.ceil(Math.sqrt(chunksShown * 2));
const size = chunksShown <= 4 ? 32 : chunksShown <= 8 ? 25 : chunksShown <= 16 ? 20 : 15;
const wide = chunksShown === 1 ? 96 : size;                       // of a cell
const gap = size > 20 ? 4 : 2;
const labelled = D.buffers.length > 1;
const bodyH = mine => mine.reduce((sum, list) => sum + (list.length && labelled ? 13 : 0) + Math.ceil(list.length / perRow) * (size + gap), 0);
const cardW = Math.max(perRow * (wide + gap) - gap + 20, P > 12 ? 70 : 100);
const cardH = 36 + Math.max(...used.map(bodyH));

function ringPlaces() {
  const places = (rx, ry) => Array.from({length: P}, (_, i) => {
    const a = 2 * Math.PI * i / P - Math.PI / 2;
    return [rx * Math.cos(a), ry * Math.sin(a)];
  });
  const room = P > 10 ? 26 : 44;
  const clash = list => list.some((p, i) => list.some((q, j) => j > i &&
    Math.abs(p[0] - q[0]) < cardW + room && Math.abs(p[1] - q[1]) < cardH + room));
  let ry = Math.max(cardH * .8 + 40, cardW * .45), rx = Math.max(1.55 * ry, cardW * .8 + 40);
  if (P <= 2) return P === 1 ? [[0, 0]] : [[-cardW / 2 - 80, 0], [cardW / 2 + 80, 0]];
  while (clash(places(rx, ry))) { rx *= 1.05; ry *= 1.05; }
  return places(rx, ry);
}
function gridPlaces() {
  const shape = columns => Math.abs(Math.log(columns * (cardW + 80) / (Math.ceil(P / columns) * (cardH + 80)) / 1.6));
  let columns = 1;
  for (let c = 2; c <= P; c *= 2) if (shape(c) < shape(columns)) columns = c;
  return Array.from({length: P}, (_, i) => [(i % columns) * (cardW + 80), Math.floor(i / columns) * (cardH + (P > 4 ? 108 : 80))]);
}
function treePlaces() {
  const children = Array.from({length: P}, () => []);
  let root = 0;
  D.parents.forEach((p, i) => p < 0 ? root = i : children[p].push(i));
  const places = [];
  let next = 0;
  (function place(rank, depth) {
    for (const child of children[rank]) place(child, depth + 1);
    const xs = children[rank].map(c => places[c][0]);
    const x = xs.length > 1 ? (xs[0] + xs[xs.length - 1]) / 2 : xs.length === 1 ? xs[0] + (cardW + 26) / 2 : (next += cardW + 26);
    if (xs.length === 1) next = Math.max(next, x);
    places[rank] = [x, depth * (cardH + 62)];
  })(root, 0);
  return places;
}
const places = {ring: ringPlaces, grid: gridPlaces, tree: treePlaces}[D.layout]();
const low = i => Math.min(...places.map(p => p[i])), high = i => Math.max(...places.map(p => p[i]));
const margin = D.layout === 'grid' && P > 4 ? 58 : 34;
const box = [low(0) - cardW / 2 - margin, low(1) - cardH / 2 - margin];
const extent = [high(0) - low(0) + cardW + 2 * margin, high(1) - low(1) + cardH + 2 * margin];

// ---- cells ----
function drawCell(v, s, options = {}) {
  const g = svg('g'), w = options.wide || s;
  const radius = Math.min(6, s / 5);
  const clip = `clip${drawCell.next = (drawCell.next || 0) + 1}`;
  g.append(svg('clipPath', {id: clip}, svg('rect', {width: w, height: s, rx: radius})));
  const inside = svg('g', {'clip-path': `url(#${clip})`});
  inside.append(svg('rect', {class: 'cell', width: w, height: s}));
  if (v && !D.sums) {
    inside.append(svg('rect', {width: w, height: s, fill: tint(v)}));
  } else if (v && byShare) {
    const share = ranksOf(v).length / P;
    inside.append(svg('rect', {y: s * (1 - share), width: w, height: s * share,
      fill: share === 1 ? 'var(--done)' : 'var(--accent)', opacity: .35 + .6 * share}));
  } else if (v) {
    for (const rank of ranksOf(v)) inside.append(svg('rect', {x: w * rank / P, width: w / P + .3, height: s, fill: hue(rank)}));
  }
  g.append(inside);
  if (s >= 14 && !D.barrier && !whole) {
    const text = svg('text', {class: 'number' + (v ? '' : ' faint'), x: w / 2, y: s / 2 + .5, 'font-size': Math.max(9, s * .42)});
    text.textContent = v ? pieceOf(v) : options.faint ?? '';
    g.append(text);
  }
  g.append(svg('rect', {class: 'frame ' + (options.frame || ''), x: .5, y: .5, width: w - 1, height: s - 1, rx: radius}));
  const title = svg('title');
  title.textContent = saying(v);
  g.append(title);
  return g;
}

function drawCard(rank, state, fresh) {
  const [x, y] = places[rank];
  const done = D.wanted[rank].every((w, c) => !w || state[rank][OUT][c] === w) && D.wanted[rank].some(w => w);
  const g = svg('g', {transform: `translate(${x - cardW / 2} ${y - cardH / 2})`});
  g.append(svg('rect', {class: 'card' + (done ? ' done' : ''), width: cardW, height: cardH, rx: 11}));
  const name = svg('text', {class: 'name', x: 25, y: 20});
  name.textContent = (P > 12 ? '' : 'rank ') + rank;
  g.append(svg('circle', {cx: 15, cy: 15.5, r: 5, fill: hue(rank)}), name);
  if (done) g.append(svg('path', {class: 'tick', d: `M${cardW - 22} 15.5 l4 4 l7 -8`}));
  let top = 30;
  D.buffers.forEach((buffer, b) => {
    const list = used[rank][b];
    if (list.length && labelled) {
      const label = svg('text', {class: 'place', x: 10, y: top + 7});
      label.textContent = buffer.name;
      g.append(label);
      top += 13;
    }
    list.forEach((c, i) => {
      const v = state[rank][b][c];
      const finished = b === OUT && v && v === D.wanted[rank][c];
      const isNew = fresh && fresh.has(`${rank} ${b} ${c}`);
      const cell = drawCell(v, size, {wide, faint: b === OUT && D.wanted[rank][c] ? pieceOf(D.wanted[rank][c]) : '', frame: isNew ? 'new' : finished ? 'done' : ''});
      cell.setAttribute('transform', `translate(${10 + (i % perRow) * (wide + gap)} ${top + Math.floor(i / perRow) * (size + gap)})`);
      g.append(cell);
    });
    top += Math.ceil(list.length / perRow) * (size + gap);
  });
  return g;
}

// ---- arrows ----
const inCard = (rank, [x, y]) => Math.abs(x - places[rank][0]) < cardW / 2 + 6 && Math.abs(y - places[rank][1]) < cardH / 2 + 6;
function drawArrow(from, to, kind, colour) {
  const a = places[from], b = places[to];
  const dx = b[0] - a[0], dy = b[1] - a[1], length = Math.hypot(dx, dy);
  // In a grid, round the cards that stand between.
  const between = D.layout === 'grid' && (dx && dy ? 0 : dx ? Math.abs(dx) > cardW + 81 && cardH + 60 : Math.abs(dy) > cardH + 109 && cardW + 60);
  const bend = (between ? between / length : Math.max(D.layout === 'ring' ? .16 : .1, 56 / length)) * (kind === 'in' ? -1 : 1);
  const c = [(a[0] + b[0]) / 2 - dy * bend, (a[1] + b[1]) / 2 + dx * bend];
  // The part of the curve a-c-b that lies outside both cards.
  const mix = (s, t) => [0, 1].map(i => (1 - s) * (1 - t) * a[i] + ((1 - s) * t + s * (1 - t)) * c[i] + s * t * b[i]);
  let s = 0, t = 1;
  while (s < .49 && inCard(from, mix(s, s))) s += .005;
  while (t > .51 && inCard(to, mix(t, t))) t -= .005;
  const start = mix(s, s), control = mix(s, t), end = mix(t, t);
  const path = svg('path', {class: 'arrow ' + kind, d: `M${start} Q${control} ${end}`});
  const angle = Math.atan2(end[1] - control[1], end[0] - control[0]) * 180 / Math.PI;
  const tip = svg('path', {class: 'tip', d: 'M3 0 L-8 5 L-8 -5 Z', transform: `translate(${end}) rotate(${angle})`});
  if (colour) { path.style.stroke = colour; tip.style.fill = colour; }
  return [path, tip];
}
// One flight per pair of ranks: a path, what travels on it, and in which part of the animation.
function flightsOf(k) {
  const flights = new Map();
  const add = (from, to, kind, values, first, last, colour) => {
    if (from === to) return;
    const key = `${from} ${to} ${kind} ${first}`;
    if (!flights.has(key)) flights.set(key, {from, to, kind, values: [], first, last, colour});
    flights.get(key).values.push(...values.filter(v => v));
  };
  const all = Array.from({length: P}, (_, i) => i);
  for (const m of D.rounds[k - 1].moves) {
    if (m.kind !== 'fold') { add(m.from, m.to, m.kind, m.values, 0, 1, ''); continue; }
    const inside = m.to === m.actor;  // nothing goes out again
    for (const rank of all) {
      const own = m.values.map(v => D.values.findIndex(([piece, ranks]) => piece === pieceOf(v) && ranks.length === 1 && ranks[0] === rank));
      add(rank, m.actor, 'in', own.map(v => Math.max(v, 0)), 0, inside ? 1 : .5, hue(m.actor));
    }
    for (const rank of m.to < 0 ? all : [m.to]) add(m.actor, rank, 'out', m.values, .5, 1, hue(m.actor));
  }
  return [...flights.values()];
}
function drawFlights(k) {
  const layer = svg('g'), tokens = [];
  const flights = k > 0 ? flightsOf(k) : [];
  const crowded = flights.length > 40;
  for (const flight of flights) {
    const [path, tip] = drawArrow(flight.from, flight.to, flight.kind, flight.colour);
    if (crowded) path.style.strokeWidth = 1;
    layer.append(path, tip);
    const s = Math.min(size, crowded ? 13 : 22), shown = flight.values.slice(0, crowded ? 1 : 4);
    const token = svg('g');
    if (D.barrier) shown.length = Math.min(shown.length, 1);
    shown.forEach((v, i) => {
      const cell = drawCell(v, s, {frame: 'token', wide: chunksShown === 1 && !crowded ? 34 : s});
      cell.setAttribute('transform', `translate(${shown.length > 1 ? (i - shown.length / 2) * s * .62 : chunksShown === 1 && !crowded ? -17 : -s / 2} ${-s / 2})`);
      token.append(cell);
    });
    if (flight.values.length > shown.length && !crowded) {
      const more = svg('text', {class: 'place', x: shown.length * s * .31 + s * .5, y: 4});
      more.textContent = `+${flight.values.length - shown.length}`;
      token.append(more);
    }
    tokens.push({path, token, flight});
  }
  const top = svg('g');
  for (const t of tokens) top.append(t.token);
  layer.append(top);
  return {layer, tokens};
}
function setTokens(tokens, t) {  // t in [0, 1] while flying; null at rest
  for (const {path, token, flight} of tokens) {
    const length = path.getTotalLength();
    const at = t === null ? .5 : (t - flight.first) / (flight.last - flight.first);
    const hidden = t === null ? flight.kind === 'in' && flight.last < 1 : at < 0 || at > 1;
    const eased = at < .5 ? 2 * at * at : 1 - 2 * (1 - at) * (1 - at);
    const point = path.getPointAtLength(length * Math.min(Math.max(t === null ? at : eased, 0), 1));
    token.setAttribute('transform', `translate(${point.x} ${point.y})`);
    token.style.display = hidden ? 'none' : '';
  }
}

// ---- the page ----
const stage = svg('svg', {viewBox: `${box} ${extent}`, role: 'img'});
const nowLine = el('p', {class: 'now'}), say = el('p', {class: 'say', 'aria-live': 'polite'}), list = el('ul', {class: 'moves'});
const buttons = {};
const controls = el('div', {class: 'controls'});
const icons = {first: 'M4 3v10M13 3L6 8l7 5z', prev: 'M11 3L4 8l7 5z', next: 'M5 3l7 5-7 5z', last: 'M12 3v10M3 3l7 5-7 5z'};
function button(key, text, label, action) {
  const icon = text || svg('svg', {viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', class: 'icon'}, svg('path', {d: icons[key]}));
  buttons[key] = el('button', {type: 'button', 'aria-label': label, title: label}, icon);
  buttons[key].onclick = action;
  controls.append(buttons[key]);
}
button('first', '', 'First (Home)', () => go(0));
button('prev', '', 'Previous round (←)', () => go(round - 1));
button('play', 'Play', 'Play or pause (space)', toggle);
buttons.play.className = 'main';
button('next', '', 'Next round (→)', () => go(round + 1, true));
button('last', '', 'Last (End)', () => go(R));
const slider = el('input', {type: 'range', min: 0, max: R, value: 0, 'aria-label': 'Round'});
slider.oninput = () => go(+slider.value);
controls.append(slider);
const legend = el('div', {class: 'legend'});
const table = el('table'), lanes = el('div');
const facts = el('dl');
for (const [label, text] of D.facts) facts.append(el('dt', {}, label), el('dd', {}, text));
const colours = el('button', {type: 'button'}), theme = el('button', {type: 'button', 'aria-label': 'Light or dark'}, '◐');
colours.onclick = () => { byShare = !byShare; drawLegend(); show(); };
theme.onclick = () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
};
document.body.append(el('main', {},
  el('header', {}, el('div', {}, el('h1', {}, capital(D.title)), el('p', {class: 'summary'}, capital(D.summary) + '.')),
    el('div', {style: 'display:flex;gap:6px;flex:none'}, ...(D.sums ? [colours] : []), theme)),
  el('div', {class: 'columns'},
    el('section', {class: 'panel stage', 'aria-label': 'Drawing'}, stage, legend, controls),
    el('div', {class: 'side'}, el('section', {class: 'panel'}, nowLine, say, list),
      el('section', {class: 'panel'}, el('h2', {}, 'In all'), facts))),
  el('section', {class: 'panel wide'}, el('h2', {}, 'All rounds at a glance'), lanes),
  el('section', {class: 'panel wide'}, el('h2', {}, 'Who holds what'), table)));

function drawLegend() {
  colours.textContent = byShare ? 'Colour by rank' : 'Colour by share';
  legend.replaceChildren();
  const chip = (colour, text) => legend.append(el('span', {}, el('i', {style: `background:${colour}`}), text));
  if (D.sums && byShare) {
    chip('color-mix(in srgb, var(--accent) 45%, var(--empty))', 'few contributions');
    chip('color-mix(in srgb, var(--accent) 85%, var(--empty))', 'most');
    chip('var(--done)', 'all');
  } else {
    const shown = D.rooted ? pieces : P, word = D.rooted ? D.word + ' ' : D.barrier ? 'rank ' : D.sums ? 'contribution of ' : 'from ';
    if (whole && D.rooted) chip(turn(0), 'the vector');
    else if (shown > 12) legend.append(`each ${D.rooted ? D.word : 'rank'} has a colour of its own`);
    else for (let i = 0; i < shown; ++i) chip(turn(i / shown), word + i);
  }
  legend.append(el('span', {}, el('i', {style: 'box-shadow:inset 0 0 0 2px var(--glow)'}), 'changed in this round'),
    el('span', {}, el('i', {style: 'box-shadow:inset 0 0 0 2px var(--done)'}), 'finished'));
}

function describe(m) {
  const what = D.barrier ? 'here' : whole ? 'vector' : `${D.word}${new Set(m.values.map(pieceOf)).size > 1 ? 's' : ''} ${ranges([...new Set(m.values.filter(v => v).map(pieceOf))].sort((a, b) => a - b))}`;
  const from = [...new Set(m.values.filter(v => v).map(v => ranksOf(v)[0]))];
  const origin = D.sums || D.rooted || D.barrier || (from.length === 1 && from[0] === m.from) || m.values.every(v => !v || pieceOf(v) === ranksOf(v)[0]) ? '' : ` of ${ranges(from.sort((a, b) => a - b))}`;
  const whose = D.sums && !D.barrier && m.values.length === 1 && P <= 10 ? ` (${setText(m.values[0])})` : '';
  if (m.kind === 'read') return [el('b', {}, `${m.to} ⇠ ${m.from}`), `  reads ${what}${origin}`];
  if (m.kind === 'fold') return [el('b', {}, `${m.actor}`), `  folds ${what} for ${m.to < 0 ? 'everybody' : m.to === m.actor ? 'itself' : 'rank ' + m.to}`];
  return [el('b', {}, `${m.from} → ${m.to}`), `  ${what}${origin}${whose}${m.kind === 'add' && !D.barrier ? ', added' : ''}`];
}

function drawTable(state, fresh) {
  table.replaceChildren(el('caption', {}, D.barrier ? 'The ranks whose arrival is known.' : D.sums ? 'Each cell: the ranks whose contribution it holds.' : D.rooted ? `Each cell: the ${whole ? 'vector' : D.word} it holds.` : 'Each cell: the rank its data came from.'));
  const head = el('tr', {}, el('th', {scope: 'col'}, 'rank'));
  D.buffers.forEach((b, i) => {
    if (i) head.append(el('td', {class: 'gap'}));
    for (let c = 0; c < b.chunks; ++c) head.append(el('th', {scope: 'col'}, D.barrier ? 'knows of' : whole && b.chunks === 1 ? b.name : `${labelled ? b.name + ' ' : D.word + ' '}${c}`));
  });
  const rowsOf = Array.from({length: P}, (_, rank) => {
    const row = el('tr', {}, el('th', {scope: 'row'}, rank));
    D.buffers.forEach((b, i) => {
      if (i) row.append(el('td', {class: 'gap'}));
      for (let c = 0; c < b.chunks; ++c) {
        const v = state[rank][i][c];
        const classes = [i === OUT && v && v === D.wanted[rank][c] ? 'done' : '', fresh.has(`${rank} ${i} ${c}`) ? 'new' : ''];
        const where = v && i !== OUT && !D.barrier && !whole && !D.rooted ? `${pieceOf(v)}: ` : '';
        row.append(el('td', {class: classes.join(' ').trim(), title: saying(v)}, where + setText(v)));
      }
    });
    return row;
  });
  table.append(el('thead', {}, head), el('tbody', {}, ...rowsOf));
}

function drawLanes() {
  const dx = Math.max(22, Math.min(170, 1020 / R)), dy = Math.max(12, Math.min(26, 300 / P));
  const width = 50 + R * dx + 30, height = P * dy + 26;
  const picture = svg('svg', {class: 'lanes', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': 'Messages of all rounds: time runs to the right, one line for each rank'});
  const y = rank => 22 + rank * dy;
  for (let rank = 0; rank < P; ++rank) {
    const text = svg('text', {x: 4, y: y(rank) + 4});
    text.textContent = P > 20 && rank % 4 ? '' : rank;
    picture.append(svg('line', {class: 'lane', x1: 34, x2: width - 16, y1: y(rank), y2: y(rank)}), text);
  }
  for (let k = 1; k <= R; ++k) {
    const x = 40 + (k - 1) * dx;
    const band = svg('rect', {class: 'band', 'data-round': k, x, y: 12, width: dx, height: height - 16, rx: 6});
    const title = svg('title');
    title.textContent = `round ${k}: ${D.rounds[k - 1].say}`;
    band.append(title);
    band.onclick = () => go(k);
    const text = svg('text', {x: x + dx / 2, y: 9, 'text-anchor': 'middle'});
    text.textContent = dx > 20 || k % 2 ? k : '';
    picture.append(band, text);
    for (const f of flightsOf(k)) {
      const a = x + dx * (.08 + .84 * f.first), b = x + dx * (.08 + .84 * f.last);
      picture.append(svg('path', {class: 'hop', 'data-round': k, 'pointer-events': 'none', d: `M${a} ${y(f.from)} L${b} ${y(f.to)}`}),
        svg('circle', {cx: b, cy: y(f.to), r: 2, fill: 'var(--soft)', 'pointer-events': 'none'}));
    }
  }
  lanes.append(picture);
}

// ---- stepping ----
function show(t = null) {
  const flying = t !== null && round > 0;
  const state = states[flying ? round - 1 : round];
  const fresh = new Set(flying || !round ? [] : D.rounds[round - 1].changes.filter(c => c[3]).map(c => c.slice(0, 3).join(' ')));
  const {layer, tokens} = drawFlights(round);
  const cards = svg('g');
  for (let rank = 0; rank < P; ++rank) cards.append(drawCard(rank, state, fresh));
  stage.replaceChildren(cards, layer);
  setTokens(tokens, flying ? 0 : null);
  if (flying) return tokens;
  drawTable(state, fresh);
  return tokens;
}
function words() {
  nowLine.textContent = round ? `Round ${round} of ${R}` : 'Start';
  const text = round ? D.rounds[round - 1].say : D.barrier ? 'Every rank has arrived and knows only of itself.' : 'Before the first round: what every rank brings.';
  say.textContent = text;
  list.replaceChildren(...(round ? D.rounds[round - 1].moves.map(m => el('li', {}, ...describe(m))) : []));
  list.style.display = list.children.length ? '' : 'none';
  stage.setAttribute('aria-label', `${nowLine.textContent}. ${text}`);
  slider.value = round;
  slider.setAttribute('aria-valuetext', nowLine.textContent);
  buttons.first.disabled = buttons.prev.disabled = round === 0;
  buttons.last.disabled = buttons.next.disabled = round === R;
  document.querySelectorAll('[data-round]').forEach(n => n.classList.toggle('on', +n.dataset.round === round));
}
function go(k, fly = false) {
  k = Math.min(Math.max(k, 0), R);
  const mine = ++run;
  round = k;
  words();
  history.replaceState(null, '', `#round=${k}`);
  if (!fly || calm || !k) { show(); return Promise.resolve(true); }
  const tokens = show(0), began = performance.now(), duration = 1100;
  return new Promise(resolve => (function frame(time) {
    if (mine !== run) return resolve(false);
    const t = Math.max(0, Math.min(1, (time - began) / duration));
    setTokens(tokens, t);
    if (t < 1) return requestAnimationFrame(frame);
    show();
    resolve(true);
  })(began));
}
function toggle() { playing ? stop() : play(); }
function stop() { playing = null; buttons.play.textContent = 'Play'; }
async function play() {
  const mine = playing = {};
  buttons.play.textContent = 'Pause';
  if (round === R) await go(0);
  while (playing === mine && round < R) {
    if (!await go(round + 1, true)) break;
    await new Promise(resolve => setTimeout(resolve, calm ? 1600 : 700));
  }
  if (playing === mine) stop();
}
document.addEventListener('keydown', event => {
  if (event.target === slider && event.key.startsWith('Arrow')) return;
  const keys = {ArrowRight: () => { stop(); go(round + 1, true); }, ArrowLeft: () => { stop(); go(round - 1); },
    Home: () => go(0), End: () => go(R), ' ': toggle};
  if (event.target.tagName === 'BUTTON' && event.key === ' ') return;
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
addEventListener('hashchange', () => go(+new URLSearchParams(location.hash.slice(1)).get('round') || 0));
drawLegend();
drawLanes();
go(+hash.get('round') || 0);
)js";

}  // namespace trireme
